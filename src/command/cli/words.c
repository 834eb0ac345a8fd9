#include "cli/words.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Copies one word without its quotes; `*text` is then after it. False: a quote is open. */
static bool copy_word(const char **text, char **out) {
    char quote = '\0';
    const char *at = *text;
    for (; *at != '\0' && (quote != '\0' || strchr(" \t\n", *at) == NULL); at++) {
        if (quote == '\0' && (*at == '\'' || *at == '"')) {
            quote = *at;
        } else if (quote != '\0' && *at == quote) {
            quote = '\0';
        } else {
            bool is_escape = *at == '\\' && at[1] != '\0' &&
                             (quote == '\0' || (quote == '"' && strchr("\"\\", at[1]) != NULL));
            at += is_escape;
            *(*out)++ = *at;
        }
    }
    *(*out)++ = '\0';
    *text = at;
    return quote == '\0';
}

char **bp_cli_words(const char *text, const char **ret_reason) {
    size_t length = strlen(text);
    size_t most = length / 2 + 2; /* a word and a blank are two bytes; and the NULL */
    char **words = calloc(1, most * sizeof *words + length + 2);
    if (words == NULL) {
        *ret_reason = "out of memory";
        return NULL;
    }
    char *out = (char *)&words[most];
    size_t count = 0;
    for (text += strspn(text, " \t\n"); *text != '\0'; text += strspn(text, " \t\n")) {
        words[count++] = out;
        if (!copy_word(&text, &out)) {
            *ret_reason = "a quote is not closed";
            free(words);
            return NULL;
        }
    }
    if (count == 0 || words[0][0] == '\0') {
        *ret_reason = "it names no program";
        free(words);
        return NULL;
    }
    return words;
}
