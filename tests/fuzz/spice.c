/*
 * A server that says anything: messages of all channels of bugpack-spice, and its link reply. The
 * input is a list of messages: a byte for the channel (2: a link reply), two for the type, two for
 * the size of the body, and the body.
 */
#include <stdlib.h>

#include "hosts/spice/display.h"
#include "hosts/spice/states.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void handle(const spice_opcode *opcodes, void *state, uint16_t type, const uint8_t *body,
                   size_t size) {
    const spice_opcode *opcode = spice_opcode_find(opcodes, type);
    if (opcode != NULL) {
        /* A block of its own, whose ends the address sanitizer watches. */
        uint8_t *copy = malloc(size + !size);
        memcpy(copy, body, size);
        spice_reader message = {.body = copy, .size = size};
        const char *gap = spice_carry_out(opcode, state, &message);
        if (gap != NULL && strlen(gap) > 60) {
            abort();
        }
        free(copy);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static spice_display display;
    spice_main_state main_state = {0};
    spice_reader input = {.body = data, .size = size};
    /* A small message may fill a large surface: a few of them are enough. */
    while (input.at < input.size && display.draw_count < 8) {
        uint8_t channel = spice_read_u8(&input);
        uint16_t type = spice_read_u16(&input);
        size_t body_bytes = spice_read_u16(&input);
        if (body_bytes > input.size - input.at) {
            body_bytes = input.size - input.at;
        }
        const uint8_t *body = spice_read_bytes(&input, body_bytes);
        spice_link_reply reply;
        switch (channel % 3) {
        case 0:
            handle(spice_display_opcodes, &display, type, body, body_bytes);
            break;
        case 1:
            handle(spice_main_opcodes, &main_state, type, body, body_bytes);
            break;
        default:
            (void)spice_link_reply_read(body, body_bytes, &reply);
        }
    }
    spice_display_clear(&display);
    return 0;
}
