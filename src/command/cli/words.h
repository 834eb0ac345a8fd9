/*
 * The words of a command that somebody wrote in one text.
 */
#ifndef BP_CLI_WORDS_H
#define BP_CLI_WORDS_H

/*
 * The words to a NULL, in one block to free: separated by blanks; a backslash, or single or double
 * quotes, protect what is in them. Nothing is expanded. NULL, and the reason as a clause: an open
 * quote, no word, no memory.
 */
char **bp_cli_words(const char *text, const char **ret_reason);

#endif
