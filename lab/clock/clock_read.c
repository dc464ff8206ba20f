/* Copyright (c) 2026 The nearmetal.ec2 authors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * clock_read BATCHES READS: read the clock so many times in each batch, and print the nanoseconds that one read took in
 * the fastest batch: whatever disturbs a batch, such as a busy machine below the host, only adds to it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

int main(int count, char **words)
{
    long batches = count == 3 ? strtol(words[1], NULL, 10) : 0;
    long reads = count == 3 ? strtol(words[2], NULL, 10) : 0;
    struct timespec from, to;
    struct timeval now;
    double took, least = 0;

    if (batches < 1 || reads < 1) {
        fputs("usage: clock_read BATCHES READS\n", stderr);
        return 2;
    }
    for (long batch = 0; batch < batches; batch++) {
        clock_gettime(CLOCK_MONOTONIC, &from);
        for (long done = 0; done < reads; done++)
            gettimeofday(&now, NULL);
        clock_gettime(CLOCK_MONOTONIC, &to);
        took = (to.tv_sec - from.tv_sec) * 1e9 + (to.tv_nsec - from.tv_nsec);
        if (batch == 0 || took < least)
            least = took;
    }
    printf("%.1f\n", least / reads);
    return 0;
}
