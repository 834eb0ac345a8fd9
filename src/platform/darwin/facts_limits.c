#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "platform/darwin/facts_private.h"

/* RLIMIT_RSS is not among them: here it is another word for RLIMIT_AS (sys/resource.h). */
static const struct {
    int resource;
    const char *name, *unit;
} table[] = {
    {RLIMIT_CPU, "Max cpu time", "seconds"},      {RLIMIT_FSIZE, "Max file size", "bytes"},
    {RLIMIT_DATA, "Max data size", "bytes"},      {RLIMIT_STACK, "Max stack size", "bytes"},
    {RLIMIT_CORE, "Max core file size", "bytes"}, {RLIMIT_NPROC, "Max processes", "processes"},
    {RLIMIT_NOFILE, "Max open files", "files"},   {RLIMIT_MEMLOCK, "Max locked memory", "bytes"},
    {RLIMIT_AS, "Max address space", "bytes"}};

enum { LIMIT_COUNT = sizeof table / sizeof table[0] };

bool bp_darwin_read_limits(bp_process_facts *facts) {
    facts->limits = calloc(LIMIT_COUNT, sizeof *facts->limits);
    if (facts->limits == NULL) {
        return false;
    }
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        struct rlimit limit;
        if (getrlimit(table[i].resource, &limit) != 0) {
            continue;
        }
        bp_resource_limit *out = &facts->limits[facts->limit_count++];
        memcpy(out->name, table[i].name, strlen(table[i].name) + 1);
        memcpy(out->unit, table[i].unit, strlen(table[i].unit) + 1);
        out->soft_unlimited = limit.rlim_cur == RLIM_INFINITY;
        out->hard_unlimited = limit.rlim_max == RLIM_INFINITY;
        out->soft = limit.rlim_cur;
        out->hard = limit.rlim_max;
    }
    return true;
}
