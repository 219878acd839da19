// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * ipvs_load VIP CONNECTIONS PACKETS SECONDS: connections of UDP through IPVS, all in this machine.
 * Each has another source, which a raw socket claims. They are made by a packet each. Then so many
 * packets go over them in an order of no pattern, each of which arms a timer anew for SECONDS. Then
 * one by one they end.
 *
 * Prints, tab-separated: connections; ns to make one; ns a packet; how late the end was on the mean
 * and at most, in us; and how many were left too long. A ns is an instruction where the machine
 * counts them.
 *
 * How late: a connection ends SECONDS after its last packet, which is known. How many there are
 * still is looked at each ms. If they end in order, the first of those left is the late one.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NS	1000000000LL
#define MS	1000000LL

struct packet {
	struct iphdr	ip;
	struct udphdr	udp;
};

static void fail(const char *what)
{
	fprintf(stderr, "ipvs_load: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NS + ts.tv_nsec;
}

static void sleep_until(int64_t when)
{
	struct timespec ts = { .tv_sec = when / NS, .tv_nsec = when % NS };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

/* The connections of the service: of the lines of real servers the last two columns. */
static long connections(void)
{
	FILE *file = fopen("/proc/net/ip_vs", "r");
	char line[256];
	long sum = 0;

	if (!file)
		fail("/proc/net/ip_vs");
	while (fgets(line, sizeof(line), file)) {
		long active, inactive;

		if (sscanf(line, "  -> %*[0-9A-F:] %*s %*d %ld %ld", &active, &inactive) == 2)
			sum += active + inactive;
	}
	fclose(file);
	return sum;
}

/* A packet of connection @i, whose end it puts off. */
static void send_packet(int fd, const struct sockaddr_in *vip, long i, int64_t *last)
{
	struct packet packet = {
		.ip = { .version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP,
			.tot_len = htons(sizeof(packet)), .daddr = vip->sin_addr.s_addr,
			.saddr = htonl(0x0a000001 + i / 1000) },
		.udp = { .source = htons(1024 + i % 1000), .dest = vip->sin_port,
			 .len = htons(sizeof(struct udphdr)) },
	};

	if (sendto(fd, &packet, sizeof(packet), 0, (const struct sockaddr *)vip, sizeof(*vip)) < 0)
		fail("sendto");
	last[i] = now();
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Wait for the ends, @last being sorted. */
static void ends(const int64_t *last, long nr, int64_t timeout)
{
	int64_t at = last[0] + timeout, worst = 0, sum = 0;
	long left = nr, before;

	while (left) {
		int64_t time;

		sleep_until(at);
		before = left;
		left = connections();
		time = now();
		for (long i = nr - before; i < nr - left; i++)
			sum += time - last[i] - timeout;
		if (left && time - last[nr - left] - timeout > worst)
			worst = time - last[nr - left] - timeout;
		at += MS;
		if (at < time)
			at = time + MS - time % MS;
		if (time > last[nr - 1] + 2 * timeout)
			break;
	}
	printf("\t%.0f\t%.0f\t%ld\n", (double)sum / nr / 1000, (double)worst / 1000, left);
}

int main(int argc, char **argv)
{
	struct sockaddr_in vip = { .sin_family = AF_INET, .sin_port = htons(9) };
	long nr, packets, i, k = 0;
	int64_t *last, begin;
	int raw, sink;

	if (argc != 5 || inet_pton(AF_INET, argv[1], &vip.sin_addr) != 1)
		return 2;
	nr = atol(argv[2]);
	packets = atol(argv[3]);
	last = calloc(nr, sizeof(*last));
	raw = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
	sink = socket(AF_INET, SOCK_DGRAM, 0);
	if (!last || raw < 0 || sink < 0 || bind(sink, (struct sockaddr *)&vip, sizeof(vip)))
		fail("sockets");
	begin = now();
	for (i = 0; i < nr; i++)
		send_packet(raw, &vip, i, last);
	printf("%ld\t%.0f", nr, (double)(now() - begin) / nr);
	begin = now();
	for (i = 0; i < packets; i++) {
		k = (k + 7919) % nr;
		send_packet(raw, &vip, k, last);
	}
	printf("\t%.0f", (double)(now() - begin) / packets);
	fflush(stdout);
	if (connections() != nr) {
		fprintf(stderr, "ipvs_load: %ld connections, not %ld\n", connections(), nr);
		return 1;
	}
	qsort(last, nr, sizeof(*last), compare);
	ends(last, nr, atol(argv[4]) * NS);
	return 0;
}
