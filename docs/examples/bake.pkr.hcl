# SPDX-License-Identifier: GPL-3.0-or-later
# packer init . && packer build -var workload=web bake.pkr.hcl
packer {
  required_plugins {
    amazon  = { version = ">= 1.3.0", source = "github.com/hashicorp/amazon" }
    ansible = { version = ">= 1.1.0", source = "github.com/hashicorp/ansible" }
  }
}

variable "workload" {
  type    = string
  default = "base"
}

source "amazon-ebs" "debian" {
  ami_name      = "debian-12-${var.workload}-{{timestamp}}"
  instance_type = "m7i.large"
  ssh_username  = "admin"
  source_ami_filter {
    filters     = { name = "debian-12-amd64-*", virtualization-type = "hvm" }
    owners      = ["136693071363"]
    most_recent = true
  }
}

build {
  sources = ["source.amazon-ebs.debian"]

  provisioner "ansible" {
    playbook_file   = "bake.yml"
    galaxy_file     = "requirements.yml"
    user            = "admin"
    use_proxy       = false
    extra_arguments = ["-e", "workload=${var.workload}"]
  }
}
