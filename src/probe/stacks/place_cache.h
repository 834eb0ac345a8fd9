/*
 * The names and lines of places in files, for processes of one report that run the same files, and
 * for the reports of one host. To find those of one file anew takes 30 ms where its debug data are
 * compressed, as packages have them; libdw looks at all symbols of a file for each name. Linux
 * only.
 *
 * Children inherit it, and what one of them finds all have: its memory is shared. That of a host is
 * smaller, and its own: what its children write must not harm it. Nothing is ever taken out of it;
 * where it is full, or was not begun, nothing more is kept.
 */
#ifndef BP_STACKS_PLACE_CACHE_H
#define BP_STACKS_PLACE_CACHE_H

#include "stacks/stack_files.h"

/* Any thread, any number of times. */
void bp_place_cache_begin(bool is_host);

/* Fills in what is known of the place; false: nothing is, or there is no memory. A file is the same
 * if the kernel's number of it and its build id are. */
bool bp_place_cache_find(const bp_stack_file *file, bp_stack_place *place);

/* Keeps a place of which everything was looked for. */
void bp_place_cache_keep(const bp_stack_file *file, const bp_stack_place *place);

#endif
