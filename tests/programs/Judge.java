// Copyright (c) 2026 The nearmetal.ec2 authors
// SPDX-License-Identifier: GPL-3.0-or-later
package org.opensearch.bootstrap;

import java.nio.file.Path;
import org.opensearch.cluster.metadata.Metadata;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;

/** OpenSearch's own checks of limits and of the kernel, without the rest of a node. */
public class Judge {
    public static void main(String[] arguments) throws Exception {
        Path home = Path.of(arguments[0]);
        Bootstrap.initializeNatives(home, false, false, false);
        Environment environment = new Environment(Settings.builder().put("path.home", home.toString()).build(), null);
        BootstrapContext context = new BootstrapContext(environment, Metadata.EMPTY_METADATA);
        for (BootstrapCheck check : BootstrapChecks.checks()) {
            String name = check.getClass().getSimpleName();
            if (name.startsWith("Max") || name.startsWith("FileDescriptor")) {
                BootstrapCheck.BootstrapCheckResult result = check.check(context);
                if (result.isFailure()) System.out.println("WARN " + result.getMessage());
            }
        }
        System.out.println("judged");
        Thread.sleep(60000);
    }
}
