/* Copyright (c) 2026 The nearmetal.ec2 authors
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `fresh`: touch fresh memory until no perf runs. `locks`: for so many seconds two threads want one lock of the kernel.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static __attribute__((noinline)) void *take_locks(void *unused)
{
    for (;;)
        close(dup(0)); /* both change the table of the files of their process */
    return unused;
}

static __attribute__((noinline)) void touch(char *memory, size_t size)
{
    for (size_t at = 0; at < size; at += 4096)
        memory[at] = 1;
}

int main(int count, char **words)
{
    double seconds = atof(words[2]);
    time_t began = time(NULL);
    long rounds = 0;
    pthread_t thread;
    if (words[1][0] == 'l') {
        for (int each = 0; each < 2; each++)
            pthread_create(&thread, NULL, take_locks, NULL);
        sleep(seconds);
        return 0;
    }
    for (; time(NULL) < began + seconds || !system("pgrep -x perf >/dev/null"); rounds++) {
        size_t size = 32 << 20;
        char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        touch(memory, size);
        munmap(memory, size);
    }
    printf("rounds %f 1/s larger\n", rounds / difftime(time(NULL), began));
    return count == 0;
}
