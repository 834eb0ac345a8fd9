/*
 * What the program prints: one line an event, as text or as JSON.
 */
#ifndef HOSTS_SPICE_OUTPUT_H
#define HOSTS_SPICE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

/* `text` as a JSON string, cut to fit; bytes that are no ASCII as '?'. Returns `quoted`. */
const char *spice_quote(char *quoted, size_t size, const char *text);

/*
 * Prints an event. `fields` is what its JSON line has beside `event` and `text`, such as
 * "\"frames\": 3", or "". A line of an `event` "second" is overwritten by the next on a terminal.
 * Any thread.
 */
void spice_say(bool is_json, const char *event, const char *fields, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
