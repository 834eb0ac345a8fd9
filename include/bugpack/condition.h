/*
 * Conditions: a program says once, at its start, what of its process is worth a report.
 *
 *     bugpack_condition_add(session, "rss > 2G", &error);
 *     bugpack_condition_add(session, "cpu > 90 for 10s", &error);
 *     bugpack_condition_add(session, "rss grows 100M in 1min", &error);
 *
 * | condition | is true when |
 * | --- | --- |
 * | cpu > N, cpu < N | the process used more, or less, than N per cent of one CPU since the last |
 * |                  | look: all its threads together, so that four busy ones are 400 |
 * | rss > BYTES, rss < BYTES | so much memory is resident |
 * | threads > N, threads < N | it has so many threads |
 * | fds > N, fds < N | it has so many open descriptors |
 * | state = LETTER | its first thread is in this state of proc(5): R S D T t Z I |
 * | rss grows BYTES in TIME | it has grown by so much or more within TIME; also threads and fds |
 * | log /PATTERN/ | a record of the session's log matches the regular expression (PCRE2) |
 * | idle for TIME | it used less than 1 per cent of one CPU, and logged nothing |
 *
 * All but `grows`, `log` and `idle` may end with `for TIME`: then it must have been true at every
 * look for so long. BYTES may end in K, M, G or T, powers of 1,024. TIME is a number with ms, s,
 * min or h. Decimal fractions are fine. The threads and descriptors of bugpack count, too. But a
 * look while a report is written, or right after it, says nothing of cpu, fds and idle.
 */
#ifndef BUGPACK_CONDITION_H
#define BUGPACK_CONDITION_H

#include <bugpack/error.h>
#include <bugpack/export.h>

BUGPACK_BEGIN_DECLS

/* The longest text of a condition, and the most conditions of a session. */
#define BUGPACK_CONDITION_MAX_BYTES 255
#define BUGPACK_CONDITIONS_MAX 32

/*
 * Takes a report when the condition becomes true. The monitor of the session looks once a second;
 * with target_with_descendants, and on other systems than Linux, with each sample of the metrics
 * history. So it does at the log records that have come, by their text as it was recorded. No
 * thread is added. What is true already leads to a report at once. A condition that is true must be
 * seen false before it can lead to another report.
 *
 * The report is of the kind `condition` and named <app>-condition-<subject>-<time>.zip. None is
 * taken while another one of a condition is under way, for limits.condition_cooldown_ms after one
 * was written, or beyond limits.condition_cap or limits.per_signature (bugpack/session.h): such are
 * counted in later manifests.
 *
 * Events between two looks are missed: a peak of memory, or log records that were
 * overwritten before, by more than recorder.log_ring_bytes in a second. Time in which nobody
 * looked, because the machine slept or the process was stopped, does not count for TIME. In a
 * session about another process with target_with_descendants, cpu, rss and threads are sums over
 * all, fds and state those of the target.
 *
 * Errors: INVALID (the text: the error says what is wrong; a session about no process, without
 * a history where that is looked at, or without a log for `log`), LIMIT (BUGPACK_CONDITIONS_MAX),
 * UNSUPPORTED (fds or state on this system), NO_MEMORY, INERT, CLOSED. It stays until the session
 * is closed. Any thread.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status bugpack_condition_add(bugpack_session *session,
                                                                   const char *condition,
                                                                   bugpack_error *error);

BUGPACK_END_DECLS

#endif
