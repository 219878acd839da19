// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
/*
 * Fuzz the definitions of twheeld's jobs, as JSON. One that is accepted must be accepted again as
 * it is kept, and its times must go forward.
 */
#include <stdlib.h>
#include <string.h>

#include "policy.h"

#define EXPECT(cond)	do { if (!(cond)) abort(); } while (0)
#define NOW		1795305600000000LL	/* 2026-11-22 */
#define DAY		(86400 * US_PER_S)

/* Check the first times of a job, and what is planned if it is late. */
static void times(const struct def *def)
{
	int64_t at = first_due(def, "job", NOW), next;
	struct plan plan;

	EXPECT(at >= 0);
	EXPECT(!at || at > NOW || def->kind == KIND_AT || (def->kind == KIND_AFTER && at == NOW));
	for (int i = 0; i < 5 && at && (def->kind == KIND_CRON || def->kind == KIND_RATE); i++) {
		next = next_due(def, "job", at);
		EXPECT(!next || next > at);
		plan = plan_firing(def, "job", at, at + i * DAY / 24, false);
		EXPECT(!plan.next || plan.next > at);
		EXPECT(plan.missed >= 0 && (plan.run || plan.missed));
		at = next;
	}
	for (int64_t tries = 1; tries < 4; tries++)
		EXPECT(retry_wait(def, tries) >= 0);
}

/* Parse the definition in the form in which it is kept, which must not change any more. */
static void again(struct def *def)
{
	char error[ERROR_MAX] = "", *text = strdup(json_text(def->json));
	struct json_object *json = json_tokener_parse(text);
	struct def same;

	EXPECT(json && def_parse(&same, json, NOW, error));
	EXPECT(!strcmp(json_text(same.json), text));
	def_free(&same);
	json_object_put(json);
	free(text);
}

/* libFuzzer calls it LLVMFuzzerTestOneInput; see the Makefile. */
int one_input(const unsigned char *data, size_t size)
{
	static int64_t off[] = { NOW / DAY, NOW / DAY + 1, NOW / DAY + 7 };
	struct days *days = days_find("off", true);
	char error[ERROR_MAX] = "", *text = strndup((const char *)data, size);
	struct json_object *json = text ? json_tokener_parse(text) : NULL;
	struct def def;

	days->day = off;
	days->nr = 3;
	if (json && def_parse(&def, json, NOW, error)) {
		times(&def);
		again(&def);
		def_free(&def);
	} else if (json) {
		EXPECT(*error && memchr(error, 0, sizeof(error)) && !strchr(error, '\n'));
	}
	json_object_put(json);
	free(text);
	return 0;
}
