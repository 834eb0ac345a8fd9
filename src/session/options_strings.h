#ifndef BP_SESSION_OPTIONS_STRINGS_H
#define BP_SESSION_OPTIONS_STRINGS_H

#include <bugpack/session.h>

/*
 * Replaces the host's strings by copies of our own, and fills in the directories that it did not
 * name. The strings are the host's until copied: each field is ours or NULL, whenever this returns,
 * so that bp_options_release and bp_options_release_patterns can be called. Errors: NO_MEMORY,
 * INVALID (an empty path), IO, UNSUPPORTED (no directory is known).
 */
bugpack_status bp_options_copy_strings(bugpack_options *options, bugpack_error *error);

#endif
