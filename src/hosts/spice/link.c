#include "hosts/spice/stream.h"

#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

#include <spice/protocol.h>

#include "hosts/spice/states.h"

_Static_assert(SPICE_PUBLIC_KEY_BYTES == SPICE_TICKET_PUBKEY_BYTES, "the size of the public key");

enum { header_bytes = 16, message_bytes = 18, reply_bytes = 178, ticket_bytes = 128 };
/* Types of link messages in traffic.pcap's index: the protocol has none. */
enum { link_type = 0 };

#define CAP(number) (1u << (number))

/* All capabilities of the client: what it has no code for it does not claim. */
static const uint32_t common_caps = CAP(SPICE_COMMON_CAP_PROTOCOL_AUTH_SELECTION) |
                                    CAP(SPICE_COMMON_CAP_AUTH_SPICE) |
                                    CAP(SPICE_COMMON_CAP_MINI_HEADER);

static const char *error_text(uint32_t error) {
    static const char *const texts[] = {
        [SPICE_LINK_ERR_OK] = "ok",
        [SPICE_LINK_ERR_ERROR] = "error",
        [SPICE_LINK_ERR_INVALID_MAGIC] = "invalid magic",
        [SPICE_LINK_ERR_INVALID_DATA] = "invalid data",
        [SPICE_LINK_ERR_VERSION_MISMATCH] = "version mismatch",
        [SPICE_LINK_ERR_NEED_SECURED] = "this channel needs TLS, which this client lacks",
        [SPICE_LINK_ERR_NEED_UNSECURED] = "this channel needs a connection without TLS",
        [SPICE_LINK_ERR_PERMISSION_DENIED] = "permission denied (--password-file)",
        [SPICE_LINK_ERR_BAD_CONNECTION_ID] = "bad connection id",
        [SPICE_LINK_ERR_CHANNEL_NOT_AVAILABLE] = "channel not available",
    };
    return error < sizeof texts / sizeof texts[0] ? texts[error] : "an unknown error";
}

/* Encrypts the password, with its NUL, by the server's key (RSA-OAEP with SHA-1, as spice-server
 * decrypts it). */
static bool make_ticket(const uint8_t *public_key, const char *password, uint8_t *ret_ticket,
                        spice_failure *failure) {
    const unsigned char *at = public_key;
    EVP_PKEY *key = d2i_PUBKEY(NULL, &at, SPICE_PUBLIC_KEY_BYTES);
    EVP_PKEY_CTX *context = NULL;
    uint8_t ticket[ticket_bytes];
    size_t size = sizeof ticket;
    bool is_made =
        key != NULL && EVP_PKEY_is_a(key, "RSA") && EVP_PKEY_get_size(key) == ticket_bytes &&
        (context = EVP_PKEY_CTX_new(key, NULL)) != NULL && EVP_PKEY_encrypt_init(context) == 1 &&
        EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_OAEP_PADDING) == 1 &&
        EVP_PKEY_encrypt(context, ticket, &size, (const unsigned char *)password,
                         strlen(password) + 1) == 1 &&
        size == ticket_bytes;
    EVP_PKEY_CTX_free(context);
    EVP_PKEY_free(key);
    if (!is_made) {
        return spice_fail(failure, "link", 0, "the server's key for the ticket is no RSA key");
    }
    memcpy(ret_ticket, ticket, sizeof ticket);
    return true;
}

typedef struct link_call {
    int fd;
    bugpack_channel *traffic;
    int64_t deadline_ms;
    spice_failure *failure;
} link_call;

static int64_t time_left_ms(const link_call *call) {
    return call->deadline_ms - spice_now_ms();
}

static bool receive(const link_call *call, void *bytes, size_t byte_count) {
    return spice_read(call->fd, bytes, byte_count, time_left_ms(call), call->failure);
}

/* Sends; what is recorded may be other bytes, as many. */
static bool transmit(const link_call *call, const char *name, const void *bytes,
                     const void *recorded, size_t byte_count) {
    bugpack_traffic(call->traffic, BUGPACK_SENT, link_type, name, recorded, byte_count);
    return spice_write(call->fd, bytes, byte_count, time_left_ms(call), call->failure);
}

static bool send_link(const link_call *call, uint8_t channel_type, uint32_t connection_id) {
    uint8_t link[header_bytes + message_bytes + 4] = {'R', 'E', 'D', 'Q'};
    uint8_t *message = link + header_bytes;
    spice_put(link + 4, SPICE_VERSION_MAJOR, 4);
    spice_put(link + 8, SPICE_VERSION_MINOR, 4);
    spice_put(link + 12, message_bytes + 4, 4);
    spice_put(message, connection_id, 4);
    spice_put(message + 4, channel_type, 1); /* and its id, 0 */
    spice_put(message + 6, 1, 4);            /* words of common capabilities, and none of its own */
    spice_put(message + 14, message_bytes, 4);
    spice_put(message + message_bytes, common_caps, 4);
    return transmit(call, "link", link, link, sizeof link);
}

/* Receives the reply into `reply`, which has SPICE_LINK_REPLY_MAX_BYTES behind a header. */
static bool receive_reply(const link_call *call, uint8_t *reply, spice_link_reply *ret_reply) {
    if (!receive(call, reply, header_bytes)) {
        return false;
    }
    spice_reader header = {.body = reply + 4, .size = header_bytes - 4};
    uint32_t major = spice_read_u32(&header);
    (void)spice_read_u32(&header);
    uint32_t size = spice_read_u32(&header);
    if (memcmp(reply, "REDQ", 4) != 0) {
        return spice_fail(call->failure, "link", 0, "the server does not speak SPICE");
    }
    if (major != SPICE_VERSION_MAJOR) {
        return spice_fail(call->failure, "link", 0, "the server has version %u of the protocol",
                          major);
    }
    if (size < reply_bytes || size > SPICE_LINK_REPLY_MAX_BYTES) {
        return spice_fail(call->failure, "link", 0, "the server's reply has %u bytes", size);
    }
    if (!receive(call, reply + header_bytes, size)) {
        return false;
    }
    bugpack_traffic(call->traffic, BUGPACK_RECEIVED, link_type, "link_reply", reply,
                    header_bytes + size);
    if (!spice_link_reply_read(reply + header_bytes, size, ret_reply)) {
        return spice_fail(call->failure, "link", 0, "the server's reply is malformed");
    }
    return true;
}

static bool fail_verdict(spice_failure *failure, uint32_t error) {
    return spice_fail(failure, "link", 0, "the server refuses: %s", error_text(error));
}

bool spice_link(int fd, uint8_t channel_type, uint32_t connection_id, const char *password,
                bugpack_channel *traffic, spice_failure *failure) {
    static const uint8_t zeros[ticket_bytes];
    link_call call = {.fd = fd, .traffic = traffic, .failure = failure};
    call.deadline_ms = spice_now_ms() + SPICE_LINK_MS;
    uint8_t bytes[header_bytes + SPICE_LINK_REPLY_MAX_BYTES];
    spice_link_reply reply;
    if (!send_link(&call, channel_type, connection_id) || !receive_reply(&call, bytes, &reply)) {
        return false;
    }
    if (reply.error != SPICE_LINK_ERR_OK) {
        return fail_verdict(failure, reply.error);
    }
    if ((reply.common_caps & common_caps) != common_caps) {
        return spice_fail(failure, "link", 0,
                          "the server has no tickets or no mini headers, which this client needs");
    }
    uint8_t mechanism[4], ticket[ticket_bytes], verdict[4];
    spice_put(mechanism, SPICE_COMMON_CAP_AUTH_SPICE, sizeof mechanism);
    if (!make_ticket(reply.public_key, password, ticket, failure) ||
        !transmit(&call, "auth", mechanism, mechanism, sizeof mechanism) ||
        !transmit(&call, "ticket", ticket, zeros, sizeof ticket) ||
        !receive(&call, verdict, sizeof verdict)) {
        return false;
    }
    bugpack_traffic(traffic, BUGPACK_RECEIVED, link_type, "link_result", verdict, sizeof verdict);
    spice_reader result = {.body = verdict, .size = sizeof verdict};
    uint32_t error = spice_read_u32(&result);
    return error == SPICE_LINK_ERR_OK || fail_verdict(failure, error);
}
