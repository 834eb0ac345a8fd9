/*
 * The payload of captured packets, searched while a pcap file is written.
 *
 * Each packet is searched by itself, because a rule may want to see that nothing precedes what it
 * finds. What one side of a TCP connection sends is also searched as one text, so that a secret
 * that is divided between packets is found: 64 KiB of the file are held back for that, and 4 KiB
 * that precede them are remembered of each connection. A secret is overwritten by as many bytes,
 * and the checksum of its segment or datagram adjusted.
 *
 * A file may be hostile. What is no pcap, or stops being one, is searched as one text.
 */
#ifndef BP_REDACT_PCAP_H
#define BP_REDACT_PCAP_H

#include "redact/redactor.h"

typedef struct bp_pcap_search bp_pcap_search;

/* NULL without memory. The redactor is borrowed. */
bp_pcap_search *bp_pcap_search_new(bp_redactor *redactor);
void bp_pcap_search_free(bp_pcap_search *search);

/* Leaves the connections as they are whose packets are in this whole pcap. NO_MEMORY. */
bugpack_status bp_pcap_search_exempt(bp_pcap_search *search, const void *pcap, size_t byte_count);

/* As bp_redactor_write. */
bugpack_status bp_pcap_search_write(bp_pcap_search *search, const void *bytes, size_t byte_count,
                                    bp_sink *pass_on, void *context);

#endif
