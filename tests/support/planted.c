#include "support/planted.h"

#include <stdio.h>
#include <string.h>

/*
 * What surrounds a secret, and what it is made of: 'a' letters and digits, 'h' hexadecimal digits,
 * 'u' capital letters and digits of base 32.
 */
static const struct {
    const char *format; /* with one %s */
    const char *alphabet;
    unsigned length;
} shapes[] = {
    {"connect --password=%s now", "a", 12},
    {"connect --password %s -h db", "a", 12},
    {"PASSWORD=%s", "a", 9},
    {"password: %s", "a", 12},
    {"db_password='%s'", "a", 16},
    {"{\"password\":\"%s\"}", "a", 16},
    {"{'passwd': '%s'}", "a", 16},
    {"{\"\\u0070assword\":\"%s\"}", "a", 16},
    {"<password>%s</password>", "a", 16},
    {"passphrase => \"%s\"", "a", 16},
    {"https://bob:%s@example.org/x", "a", 16},
    {"redis://:%s@cache:6379/0", "a", 20},
    {"https://example.org/?access_token=%s&x=1", "h", 24},
    {"https://a.example.org/b?sv=1&sig=%s", "h", 32},
    {"token=%s", "h", 20},
    {"api_key: %s", "h", 32},
    {"X-Api-Key: %s", "h", 32},
    {"{\"client_secret\":\"%s\"}", "h", 24},
    {"AWS_SECRET_ACCESS_KEY=%s", "a", 40},
    {"AccountKey=%s==;EndpointSuffix=x", "h", 64},
    {"Authorization: Bearer %s", "h", 30},
    {"Authorization: Basic %s", "h", 24},
    {"curl -H 'authorization: token %s' x", "h", 24},
    {"Cookie: SID=%s; lang=en", "h", 32},
    {"Set-Cookie: id=%s; Path=/", "h", 32},
    {"machine h login bob password %s", "a", 12},
    {"curl -u bob:%s http://h/", "a", 12},
    {"key AKIA%s used", "u", 16},
    {"ghp_%s", "a", 36},
    {"github_pat_%s", "a", 60},
    {"glpat-%s", "a", 20},
    {"xoxb-%s", "h", 40},
    {"sk_live_%s", "a", 24},
    {"AIza%s", "a", 35},
    {"ya29.%s", "a", 60},
    {"eyJ%s.eyJzdWIiOiIxIn0.c2ln", "a", 40},
    {"npm_%s", "a", 36},
    {"pypi-AgE%s", "a", 60},
    {"-----BEGIN RSA PRIVATE KEY----- %s -----END RSA PRIVATE KEY-----", "a", 64},
    {"SG.%s.0123456789abcdef0123456789abcdef0123456789a", "a", 22},
};
_Static_assert(sizeof shapes / sizeof shapes[0] == PLANTED_SHAPES, "a shape is missing");

char planted_secrets[PLANTED_COUNT][PLANTED_BYTES];
char planted_texts[PLANTED_COUNT][2 * PLANTED_BYTES];

void planted_make(void) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    static const char hex[] = "0123456789abcdef", capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    unsigned random = 12345;
    for (unsigned i = 0; i < PLANTED_COUNT; i++) {
        const char *from = shapes[i % PLANTED_SHAPES].alphabet[0] == 'a'   ? letters
                           : shapes[i % PLANTED_SHAPES].alphabet[0] == 'h' ? hex
                                                                           : capitals;
        unsigned length = shapes[i % PLANTED_SHAPES].length;
        for (unsigned at = 0; at < length; at++) {
            random = random * 1103515245u + 12345u;
            planted_secrets[i][at] = from[random / 65536u % strlen(from)];
        }
        planted_secrets[i][length / 2] = '7'; /* no secret is a word */
        const char *gap = strstr(shapes[i % PLANTED_SHAPES].format, "%s");
        (void)snprintf(planted_texts[i], sizeof planted_texts[i], "%.*s%s%s",
                       (int)(gap - shapes[i % PLANTED_SHAPES].format),
                       shapes[i % PLANTED_SHAPES].format, planted_secrets[i], gap + 2);
    }
}
