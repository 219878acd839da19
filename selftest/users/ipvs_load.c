// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * ipvs_load VIP CONNECTIONS PACKETS SECONDS: load IPVS with UDP connections, all in this machine.
 * Each connection has another source address, which a raw socket puts into its packets. First one
 * packet opens each connection. Then PACKETS packets go over the connections in a scattered order;
 * each re-arms the connection's timer for SECONDS. Then the connections time out one by one.
 *
 * Prints, tab-separated: connections; ns to open one; ns a packet; how late the end was, mean and
 * maximum, in us; and how many connections were left at last. If the machine counts instructions as
 * time (qemu's icount), a ns is an instruction.
 *
 * How late an end is: a connection is due SECONDS after its last packet, whose time is known. Every
 * ms the program reads how many connections there are. They end in the order they are due, so the
 * first of those left is the latest.
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

/* Count the service's connections: the sum of the last two columns in the lines of real servers. */
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

/* Send a packet of connection @i, which re-arms the connection's timer. */
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

/* Wait until all @nr connections have ended. @last is sorted: the times of their last packets. */
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
