#include "hosts/spice/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bugpack/version.h>

static const char usage[] =
    "usage: bugpack-spice [OPTION...] spice://HOST[:PORT]\n"
    "\n"
    "Connects to a SPICE server without a window, measures it, and takes reports: by F12 in its\n"
    "terminal, by SIGUSR1 and by bugpack trigger. Other keys go to the server.\n"
    "\n"
    "  --password TEXT                what the server asks for\n"
    "  --password-file FILE           the same, from the first line of a file\n"
    "  --tls-port PORT                connect to this port, by TLS\n"
    "  --ca-file FILE                 the certificates to trust; else those of the system\n"
    "  --report-dir DIR               where reports are written\n"
    "  --pedantic                     a report of each distinct protocol gap, 50 at most\n"
    "  --pedantic-dir DIR             the same, written to DIR\n"
    "  --auto-snapshot-interval SECS  a report every so many seconds\n"
    "  --json                         lines of JSON in place of text\n"
    "  -h, --help, --version\n";

static const struct option long_options[] = {
    {"password", required_argument, NULL, 'p'},
    {"password-file", required_argument, NULL, 'f'},
    {"tls-port", required_argument, NULL, 't'},
    {"ca-file", required_argument, NULL, 'c'},
    {"report-dir", required_argument, NULL, 'r'},
    {"pedantic", no_argument, NULL, 'P'},
    {"pedantic-dir", required_argument, NULL, 'd'},
    {"auto-snapshot-interval", required_argument, NULL, 'a'},
    {"json", no_argument, NULL, 'j'},
    {"version", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static int complain(const char *what, const char *which) {
    (void)fprintf(stderr, "bugpack-spice: %s: %s\nTry 'bugpack-spice --help'.\n", what, which);
    return 2;
}

static bool read_number(const char *text, unsigned long most, unsigned long *ret_number) {
    char *end; /* what is too large for a long is ULONG_MAX */
    *ret_number = strtoul(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && *ret_number - 1 < most;
}

static bool is_port(const char *text) {
    unsigned long number;
    return strlen(text) <= 5 && read_number(text, 65535, &number);
}

/* spice://HOST, spice://HOST:PORT, and an IPv6 address in brackets. */
static bool read_address(spice_options *options, const char *uri) {
    static const char scheme[] = "spice://";
    if (strncmp(uri, scheme, sizeof scheme - 1) != 0) {
        return false;
    }
    const char *host = uri + sizeof scheme - 1;
    size_t host_bytes = strcspn(host, ":/?#@");
    const char *rest = host + host_bytes;
    if (*host == '[') {
        host++;
        host_bytes = strcspn(host, "]");
        rest = host + host_bytes + (host[host_bytes] == ']');
    }
    const char *port = *rest == ':' ? rest + 1 : "5900";
    if (host_bytes == 0 || host_bytes >= sizeof options->host || (*rest != '\0' && *rest != ':') ||
        !is_port(port)) {
        return false;
    }
    memcpy(options->host, host, host_bytes);
    options->host[host_bytes] = '\0';
    (void)snprintf(options->port, sizeof options->port, "%s", port);
    return true;
}

static bool take_password(spice_options *options, const char *text, size_t byte_count) {
    if (byte_count > SPICE_PASSWORD_MAX_BYTES) {
        return false;
    }
    memcpy(options->password, text, byte_count);
    options->password[byte_count] = '\0';
    return true;
}

static bool read_password_file(spice_options *options, const char *path) {
    char line[SPICE_PASSWORD_MAX_BYTES + 3];
    FILE *file = fopen(path, "re");
    bool is_read = file != NULL && fgets(line, sizeof line, file) != NULL;
    if (file != NULL) {
        (void)fclose(file);
    }
    return is_read && take_password(options, line, strcspn(line, "\r\n"));
}

/* One option; -1, or the status to end with. */
static int take_option(spice_options *options, int option) {
    unsigned long number;
    switch (option) {
    case 'p':
        if (!take_password(options, optarg, strlen(optarg))) {
            return complain("a password has at most 59 bytes", "--password");
        }
        memset(optarg, '*', strlen(optarg));
        return -1;
    case 'f':
        return read_password_file(options, optarg) ? -1 : complain("no password in", optarg);
    case 't':
        options->tls_port = optarg;
        return is_port(optarg) ? -1 : complain("not a port", optarg);
    case 'c':
        options->ca_file = optarg;
        return -1;
    case 'r':
        options->report_dir = optarg;
        return -1;
    case 'd':
        options->pedantic_dir = optarg;
        options->is_pedantic = true;
        return -1;
    case 'P':
        options->is_pedantic = true;
        return -1;
    case 'a':
        if (!read_number(optarg, 86400, &number)) {
            return complain("not a number of seconds from 1 to 86400", optarg);
        }
        options->auto_snapshot_ms = (uint32_t)number * 1000;
        return -1;
    case 'j':
        options->is_json = true;
        return -1;
    case 'v':
        return puts("bugpack-spice " BUGPACK_VERSION) < 0;
    case 'h':
        return fputs(usage, stdout) < 0;
    default:
        (void)fputs("Try 'bugpack-spice --help'.\n", stderr);
        return 2;
    }
}

int spice_options_read(spice_options *ret_options, int argument_count, char **arguments) {
    spice_options options = {0};
    int option;
    while ((option = getopt_long(argument_count, arguments, "h", long_options, NULL)) != -1) {
        int status = take_option(&options, option);
        if (status >= 0) {
            return status;
        }
    }
    if (optind + 1 != argument_count) {
        return complain("expected", "one address, as spice://HOST:PORT");
    }
    if (!read_address(&options, arguments[optind])) {
        return complain("not an address as spice://HOST:PORT", arguments[optind]);
    }
    *ret_options = options;
    return -1;
}
