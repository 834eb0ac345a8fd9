/*
 * Reading a message of the wire, and what a channel knows of its opcodes. Nothing here or in what
 * includes only this (display.c, states.c) does input or output: a fuzz target plays the server.
 */
#ifndef HOSTS_SPICE_WIRE_H
#define HOSTS_SPICE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The body of a message, little-endian as all of SPICE. A read beyond its end gives 0 and sets
 * `is_short`, which stays: a parser reads all fields, then asks once. */
typedef struct spice_reader {
    const uint8_t *body;
    size_t size;
    size_t at;
    bool is_short;
} spice_reader;

static inline const uint8_t *spice_read_bytes(spice_reader *reader, uint64_t count) {
    if (count > reader->size - reader->at) {
        reader->is_short = true;
        reader->at = reader->size;
        return NULL;
    }
    const uint8_t *bytes = reader->body + reader->at;
    reader->at += count;
    return bytes;
}

static inline uint64_t spice_read_number(spice_reader *reader, size_t byte_count) {
    const uint8_t *bytes = spice_read_bytes(reader, byte_count);
    uint64_t number = 0;
    for (size_t i = bytes ? byte_count : 0; i > 0; i--) {
        number = number << 8 | bytes[i - 1];
    }
    return number;
}

static inline uint8_t spice_read_u8(spice_reader *reader) {
    return (uint8_t)spice_read_number(reader, 1);
}

static inline uint16_t spice_read_u16(spice_reader *reader) {
    return (uint16_t)spice_read_number(reader, 2);
}

static inline uint32_t spice_read_u32(spice_reader *reader) {
    return (uint32_t)spice_read_number(reader, 4);
}

static inline int32_t spice_read_i32(spice_reader *reader) {
    return (int32_t)spice_read_u32(reader);
}

/* Pointers of the protocol are offsets in the body. The new reader is short if there is nothing. */
static inline spice_reader spice_reader_at(const spice_reader *reader, uint32_t offset) {
    spice_reader other = *reader;
    other.is_short = offset >= reader->size;
    other.at = other.is_short ? reader->size : offset;
    return other;
}

/* Writes a number of `byte_count` bytes. */
static inline void spice_put(uint8_t *bytes, uint64_t number, size_t byte_count) {
    for (size_t i = 0; i < byte_count; i++) {
        bytes[i] = (uint8_t)(number >> (8 * i));
    }
}

/* What a message cannot be decoded for: its gap is "<channel>:decode:<opcode>"; and what there is
 * no code for: "<channel>:unimpl:<opcode>". */
#define SPICE_MALFORMED "malformed"
#define SPICE_UNIMPLEMENTED "unimpl"

/*
 * Carries out a message on the state of its channel. Returns NULL, SPICE_MALFORMED, or the part of
 * a gap key behind the channel, such as "image:glz_rgb": a literal, so that a server cannot make
 * up keys.
 */
typedef const char *spice_handler(void *state, spice_reader *message);

/* A known opcode, in a table that ends with one without a name. Shorter messages than it has at
 * least are malformed. */
typedef struct spice_opcode {
    uint16_t type; /* below SPICE_OPCODE_TYPES */
    const char *name;
    size_t least_bytes;
    spice_handler *handle; /* NULL: it is not implemented */
} spice_opcode;

enum { SPICE_OPCODE_TYPES = 512 };

/* The opcode of a type, or NULL. */
static inline const spice_opcode *spice_opcode_find(const spice_opcode *opcodes, uint16_t type) {
    while (opcodes->name != NULL && opcodes->type != type) {
        opcodes++;
    }
    return opcodes->name ? opcodes : NULL;
}

/* Carries out a message by its handler, and says what the handler says. */
static inline const char *spice_carry_out(const spice_opcode *opcode, void *state,
                                          spice_reader *message) {
    if (opcode->handle == NULL) {
        return SPICE_UNIMPLEMENTED;
    }
    if (message->size < opcode->least_bytes) {
        return SPICE_MALFORMED;
    }
    const char *gap = opcode->handle(state, message);
    return message->is_short ? SPICE_MALFORMED : gap;
}

/* For messages that change nothing here. */
static inline const char *spice_accept(void *state, spice_reader *message) {
    (void)state;
    (void)message;
    return NULL;
}

#endif
