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

static inline const uint8_t *spice_read_bytes(spice_reader *reader, size_t count) {
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

/* What a message cannot be decoded for: its gap is "<channel>:decode:<opcode>". */
#define SPICE_MALFORMED "malformed"

/*
 * Carries out a message on the state of its channel. Returns NULL, SPICE_MALFORMED, or the part of
 * a gap key behind the channel, such as "image:glz_rgb": a literal, so that a server cannot make
 * up keys.
 */
typedef const char *spice_handler(void *state, spice_reader *message);

/* A known opcode. Without a handler it is not implemented: "<channel>:unimpl:<name>". */
typedef struct spice_opcode {
    uint16_t type;
    const char *name;
    spice_handler *handle;
} spice_opcode;

/* The opcodes of one direction of a channel. Counters have a place for each, and one for others. */
enum { SPICE_OPCODES_MAX = 48 };
typedef struct spice_opcodes {
    const spice_opcode *rows;
    size_t count;
} spice_opcodes;

/* The row of a type; `count` if there is none. */
static inline size_t spice_opcode_find(const spice_opcodes *opcodes, uint16_t type) {
    size_t row = 0;
    while (row < opcodes->count && opcodes->rows[row].type != type) {
        row++;
    }
    return row;
}

#endif
