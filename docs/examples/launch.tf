# SPDX-License-Identifier: GPL-3.0-or-later
# terraform init && terraform apply -var image=ami-… -var 'subnets=["subnet-…"]'
terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = { source = "hashicorp/aws", version = ">= 5.0" }
  }
}

variable "image" {
  type        = string
  description = "An image of Debian 12 or Ubuntu 22.04, or one that bake.pkr.hcl made; that one needs no user data"
}

variable "subnets" {
  type = list(string)
}

resource "aws_launch_template" "web" {
  name_prefix            = "web-"
  image_id               = var.image
  instance_type          = "m7i.large"
  user_data              = filebase64("${path.module}/user-data")
  update_default_version = true

  metadata_options {
    http_tokens            = "required"
    instance_metadata_tags = "enabled"
  }

  # fleet.aws_ec2.yml reads the workload from the first tag, association.yml takes instances by the second one.
  tag_specifications {
    resource_type = "instance"
    tags          = { workload = "web", nearmetal = "true" }
  }
}

resource "aws_autoscaling_group" "web" {
  name_prefix         = "web-"
  min_size            = 2
  max_size            = 20
  vpc_zone_identifier = var.subnets

  launch_template {
    id      = aws_launch_template.web.id
    version = aws_launch_template.web.latest_version
  }

  # Another image or other user data replaces a tenth of the instances at a time.
  instance_refresh {
    strategy = "Rolling"
    preferences { min_healthy_percentage = 90 }
  }
}
