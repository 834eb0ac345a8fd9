#include "hosts/spice/options.h"

#include <errno.h>
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

enum {
    opt_password = 256,
    opt_password_file,
    opt_tls_port,
    opt_ca_file,
    opt_report_dir,
    opt_pedantic,
    opt_pedantic_dir,
    opt_auto_snapshot,
    opt_json,
    opt_version
};

static const struct option long_options[] = {
    {"password", required_argument, NULL, opt_password},
    {"password-file", required_argument, NULL, opt_password_file},
    {"tls-port", required_argument, NULL, opt_tls_port},
    {"ca-file", required_argument, NULL, opt_ca_file},
    {"report-dir", required_argument, NULL, opt_report_dir},
    {"pedantic", no_argument, NULL, opt_pedantic},
    {"pedantic-dir", required_argument, NULL, opt_pedantic_dir},
    {"auto-snapshot-interval", required_argument, NULL, opt_auto_snapshot},
    {"json", no_argument, NULL, opt_json},
    {"version", no_argument, NULL, opt_version},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static int complain(const char *what, const char *which) {
    (void)fprintf(stderr, "bugpack-spice: %s: %s\nTry 'bugpack-spice --help'.\n", what, which);
    return 2;
}

static bool read_number(const char *text, unsigned long most, unsigned long *ret_number) {
    char *end;
    errno = 0;
    unsigned long number = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || number == 0 ||
        number > most) {
        return false;
    }
    *ret_number = number;
    return true;
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
    case opt_password:
        if (!take_password(options, optarg, strlen(optarg))) {
            return complain("a password has at most 59 bytes", "--password");
        }
        memset(optarg, '*', strlen(optarg));
        return -1;
    case opt_password_file:
        return read_password_file(options, optarg) ? -1 : complain("no password in", optarg);
    case opt_tls_port:
        options->tls_port = optarg;
        return is_port(optarg) ? -1 : complain("not a port", optarg);
    case opt_ca_file:
        options->ca_file = optarg;
        return -1;
    case opt_report_dir:
        options->report_dir = optarg;
        return -1;
    case opt_pedantic_dir:
        options->pedantic_dir = optarg;
        options->is_pedantic = true;
        return -1;
    case opt_pedantic:
        options->is_pedantic = true;
        return -1;
    case opt_auto_snapshot:
        if (!read_number(optarg, 86400, &number)) {
            return complain("not a number of seconds from 1 to 86400", optarg);
        }
        options->auto_snapshot_ms = (uint32_t)number * 1000;
        return -1;
    case opt_json:
        options->is_json = true;
        return -1;
    case opt_version:
        (void)puts("bugpack-spice " BUGPACK_VERSION);
        return 0;
    case 'h':
        (void)fputs(usage, stdout);
        return 0;
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
