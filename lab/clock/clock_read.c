/* Copyright (c) 2026 The nearmetal.ec2 authors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * clock_read READS: read the clock that often and print the nanoseconds that one read took.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

int main(int count, char **words)
{
    long reads = count == 2 ? strtol(words[1], NULL, 10) : 0;
    struct timespec from, to;
    struct timeval now;

    if (reads < 1) {
        fputs("usage: clock_read READS\n", stderr);
        return 2;
    }
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (long done = 0; done < reads; done++)
        gettimeofday(&now, NULL);
    clock_gettime(CLOCK_MONOTONIC, &to);
    printf("%.1f\n", ((to.tv_sec - from.tv_sec) * 1e9 + (to.tv_nsec - from.tv_nsec)) / reads);
    return 0;
}
