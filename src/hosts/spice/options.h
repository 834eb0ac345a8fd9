/*
 * The command line.
 */
#ifndef HOSTS_SPICE_OPTIONS_H
#define HOSTS_SPICE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum { SPICE_PASSWORD_MAX_BYTES = 59 }; /* and a NUL, SPICE_MAX_PASSWORD_LENGTH */

typedef struct spice_options {
    char host[256];
    char port[6];
    const char *tls_port; /* NULL: without TLS */
    const char *ca_file;  /* NULL: the system's */
    char password[SPICE_PASSWORD_MAX_BYTES + 1];
    const char *report_dir; /* NULL: the library's */
    bool is_pedantic;
    const char *pedantic_dir;
    uint32_t auto_snapshot_ms; /* 0: none */
    bool is_json;
} spice_options;

/* Reads the command line, and overwrites a password in it, so that no list of processes and no
 * report shows it. The strings of `arguments` must stay. Returns -1, or the exit status to end
 * with: 0 after a help text, 2 after a message about what is wrong. */
int spice_options_read(spice_options *ret_options, int argument_count, char **arguments);

#endif
