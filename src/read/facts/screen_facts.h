/*
 * What a screen and a page show of a process, and the document that is printed does not have: its
 * threads in the order of interest, those that do the same as one row; the stack of a crash; the
 * last lines of its output.
 */
#ifndef BP_FACTS_SCREEN_FACTS_H
#define BP_FACTS_SCREEN_FACTS_H

#include "diagnose/evidence.h"
#include "json/tree_maker.h"

/* True for a busy thread, one that waits for a thread that is known or holds it up, and one that
 * the kernel does not wake. */
bool bp_thread_is_interesting(const bp_thread *thread);

/* The members of a thread that are printed. */
void bp_make_thread(bp_json_maker *maker, const bp_thread *thread, const char *frames);

/*
 * Adds the threads of a process to those of the report. `threads`: the busy ones, then others of
 * interest, then the rest; at most 12 rows, and of a further process none of the rest. Returns how
 * many found no room. `idle_threads`: those of the rest that a runtime has for itself, in words.
 * `own_threads`: those of bugpack itself, how many, `own_count`, and their sum, `own_cpu_percent`,
 * unless it is next to nothing.
 */
enum { BP_SCREEN_ROW_MAX = 12 };
uint64_t bp_make_threads(bp_json_maker *maker, const bp_evidence *evidence, bool is_interesting);

/* `crash`: the thread that crashed, with its frames. `output`: the last lines of a process that
 * failed. */
void bp_make_end_of_process(bp_json_maker *maker, const bp_evidence *evidence);

/* `title`, the command line with blanks between the arguments and without the directory of the
 * first, where it says more than the name. */
void bp_make_title(bp_json_maker *maker, const bp_json_tree *process);

#endif
