/*
 * Checks that a rule's pattern cannot express: digits that add up, and secrets whose length stands
 * in front of them, as in the logins of binary protocols.
 */
#include <ctype.h>
#include <string.h>

#include "redact/rule_set.h"

/* The bytes of a message from `at` on. Sticky: what is read behind the end makes it fail. */
typedef struct reader {
    const unsigned char *text;
    size_t at, size;
    bool is_failed;
} reader;

static size_t read_number(reader *from, size_t byte_count) {
    size_t number = 0;
    if (from->is_failed || from->size - from->at < byte_count) {
        from->is_failed = true;
        return 0;
    }
    for (size_t i = 0; i < byte_count; i++) {
        number = number << 8 | from->text[from->at++];
    }
    return number;
}

static void skip(reader *from, size_t byte_count) {
    from->is_failed = from->is_failed || from->size - from->at < byte_count;
    from->at += from->is_failed ? 0 : byte_count;
}

/* The next `byte_count` bytes are the secret; or what is there of them, if the message was cut. */
static bool take(const reader *from, size_t byte_count, bp_match *match) {
    size_t left = from->size - from->at;
    match->secret_from = from->at;
    match->secret_to = from->at + (byte_count < left ? byte_count : left);
    return !from->is_failed && match->secret_to > match->secret_from;
}

/* ISO/IEC 7812-1, annex B. */
static bool passes_luhn(const unsigned char *text, size_t byte_count, bp_match *match) {
    unsigned sum = 0, count = 0;
    (void)byte_count;
    for (size_t i = match->secret_to; i-- > match->secret_from;) {
        if (isdigit(text[i])) {
            unsigned digit = (unsigned)(text[i] - '0') << (count++ % 2);
            sum += digit > 9 ? digit - 9 : digit;
        }
    }
    return sum % 10 == 0;
}

/* Group 1 is the length of what follows the match: RFC 4616, authzid NUL authcid NUL password. */
static bool find_sasl_plain(const unsigned char *text, size_t byte_count, bp_match *match) {
    reader length = {.text = text, .at = match->secret_from, .size = match->secret_to};
    size_t field_bytes = read_number(&length, match->secret_to - match->secret_from);
    reader from = {.text = text, .at = match->to, .size = byte_count};
    size_t left = byte_count - match->to;
    size_t end = match->to + (field_bytes < left ? field_bytes : left);
    for (int i = 0; i < 2; i++) {
        const unsigned char *nul = memchr(text + from.at, '\0', end - from.at);
        if (nul == NULL) {
            return false;
        }
        from.at = (size_t)(nul + 1 - text);
    }
    return take(&from, end - from.at, match);
}

/* A length in seven bits a byte, the lowest first (MQTT 5.0, 1.5.5). */
static size_t read_mqtt_length(reader *from) {
    size_t length = 0, byte = 0x80;
    for (unsigned shift = 0; (byte & 0x80) != 0 && shift <= 21; shift += 7) {
        byte = read_number(from, 1);
        length |= (byte & 0x7F) << shift;
    }
    return length;
}

/* CONNECT from its flags on (MQTT 3.1.1 and 5.0, 3.1). The match ends with the level. */
static bool find_mqtt(const unsigned char *text, size_t byte_count, bp_match *match) {
    const unsigned has_user = 0x80, has_password = 0x40, has_will = 0x04, reserved = 0x01;
    reader from = {.text = text, .at = match->to, .size = byte_count};
    bool has_properties = (text[match->to - 1] & 0x7F) >= 5;
    size_t flags = read_number(&from, 1);
    skip(&from, 2); /* keep alive */
    if (has_properties) {
        skip(&from, read_mqtt_length(&from));
    }
    skip(&from, read_number(&from, 2)); /* client */
    if ((flags & has_will) != 0) {
        if (has_properties) {
            skip(&from, read_mqtt_length(&from));
        }
        skip(&from, read_number(&from, 2));
        skip(&from, read_number(&from, 2));
    }
    if ((flags & has_user) != 0) {
        skip(&from, read_number(&from, 2));
    }
    size_t length = read_number(&from, 2);
    return (flags & has_password) != 0 && (flags & reserved) == 0 && take(&from, length, match);
}

/* The length of a BER element (X.690, 8.1.3), of up to four bytes. */
static size_t read_ber_length(reader *from) {
    size_t length = read_number(from, 1);
    if (length < 0x80) {
        return length;
    }
    from->is_failed = from->is_failed || length == 0x80 || length > 0x84;
    return read_number(from, length & 7);
}

/* BindRequest (RFC 4511, 4.2), matched up to its version: the name, then `simple`. */
static bool find_ldap(const unsigned char *text, size_t byte_count, bp_match *match) {
    enum { octet_string = 0x04, simple = 0x80 };
    reader bind = {.text = text, .at = match->from + 1, .size = byte_count};
    reader from = {.text = text, .at = match->to, .size = byte_count};
    size_t bind_bytes = read_ber_length(&bind), bind_end = bind.at + bind_bytes;
    bool is_bind = read_number(&from, 1) == octet_string;
    skip(&from, read_ber_length(&from));
    is_bind = is_bind && read_number(&from, 1) == simple;
    size_t length = read_ber_length(&from);
    /* It is the last member. */
    return is_bind && from.at + length == bind_end && take(&from, length, match);
}

static bool is_printable(const reader *from, size_t byte_count) {
    for (size_t i = 0; i < byte_count && from->at + i < from->size; i++) {
        if (from->text[from->at + i] < 0x20 || from->text[from->at + i] == 0x7F) {
            return false;
        }
    }
    return byte_count > 0;
}

/* RFC 1929, behind its version, which has to follow the greeting: ULEN UNAME PLEN PASSWD. Only
 * printable bytes, as there is no more to recognise it by. */
static bool find_socks(const unsigned char *text, size_t byte_count, bp_match *match) {
    reader from = {.text = text, .at = match->to, .size = byte_count};
    size_t user_bytes = read_number(&from, 1);
    bool is_text = is_printable(&from, user_bytes);
    skip(&from, user_bytes);
    size_t length = read_number(&from, 1);
    return is_text && is_printable(&from, length) && take(&from, length, match);
}

bp_check *bp_check_find(const char *name) {
    static const struct {
        const char *name;
        bp_check *check;
    } checks[] = {{"luhn", passes_luhn},
                  {"sasl-plain", find_sasl_plain},
                  {"mqtt", find_mqtt},
                  {"ldap", find_ldap},
                  {"socks", find_socks}};
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        if (strcmp(name, checks[i].name) == 0) {
            return checks[i].check;
        }
    }
    return NULL;
}
