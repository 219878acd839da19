/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: 2026 The twheel authors */
/*
 * The text format of Prometheus, version 0.0.4. A family is its HELP and TYPE, and then all its
 * samples. Labels are pairs of name and value, and end with NULL.
 */
#ifndef METRICS_H
#define METRICS_H

#include <stdint.h>
#include <stdio.h>

/* Print the head of a family: its samples must follow, and no other family's. */
void metric_family(FILE *to, const char *name, const char *type, const char *help);
/* Print a sample of the family @name: a count, or a time of @ns as seconds. */
void metric_count(FILE *to, const char *name, const char *const labels[], uint64_t value);
void metric_seconds(FILE *to, const char *name, const char *const labels[], int64_t ns);

typedef void (*print_fn)(FILE *to, const void *arg);

/*
 * Write what @print prints to a new file, and rename that to @path: a reader sees the old file or
 * the new one, and never a part. If @print is NULL, only try whether that could be done. Returns 0
 * or an errno for metrics_error(): EEXIST if something else than a regular file is there.
 */
int metrics_write(const char *path, print_fn print, const void *arg);
/* Report @err, and unless @status is 0 exit with it. */
void metrics_error(int status, const char *path, int err);

#endif
