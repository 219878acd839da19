// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/* next ZONE EXPRESSION AFTER N: the next N times after AFTER, in s since 1970. For systemd.sh. */
#include <stdio.h>
#include <stdlib.h>

#include "cron.h"
#include "zones.h"

int main(int argc, char **argv)
{
	char error[CRON_ERROR];
	struct cron cron;
	struct zone zone;
	int64_t t;

	if (argc != 5 || zone_load_name(&zone, ZONEINFO, argv[1]) ||
	    !cron_parse(&cron, argv[2], error))
		return 1;
	t = atoll(argv[3]);
	for (int i = 0; i < atoi(argv[4]) && cron_next(&cron, &zone, t, &t); i++)
		printf("%lld\n", (long long)t);
	return 0;
}
