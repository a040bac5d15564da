/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The frames that a lab guest sends over its console.
 *
 *	BEGIN type payload checksum END
 *
 * Payload and checksum are escaped, so BEGIN and END occur nowhere else in a frame: whatever the
 * firmware or the kernel prints between two frames is told apart from them, and a frame that the
 * kernel printed into is recognised by its checksum.
 */
#ifndef LAB_FRAME_H
#define LAB_FRAME_H

#include <stddef.h>
#include <stdint.h>

enum {
	FRAME_BEGIN = 0x01,
	FRAME_END = 0x02,
	FRAME_ESC = 0x10,
	FRAME_FLIP = 0x40, /* after FRAME_ESC, a byte has this bit inverted */
};

/* types */
enum {
	FRAME_START = 'S', /* the command starts now */
	FRAME_OUT = 'O',   /* its standard output */
	FRAME_ERR = 'E',   /* its standard error */
	FRAME_LOG = 'K',   /* a record of the kernel's log, as /dev/kmsg gives it */
	FRAME_NOTE = 'N',  /* a message of the lab's own */
	FRAME_EXIT = 'X',  /* exit status, decimal: the last frame */
};

/* "exit status" of a guest that could not run the command */
#define FRAME_STATUS_LAB 1000

#define FRAME_MAX	  8192 /* bytes of payload */
#define FRAME_ENCODED_MAX (2 * (FRAME_MAX + 4) + 3)

/* CRC-32, four bits at a time: quick enough in emulation, with hardly any table to fill. */
static inline uint32_t frame_crc(uint32_t crc, const unsigned char *p, size_t len)
{
	static const uint32_t table[16] = {
		0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
		0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
		0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
	};

	while (len--) {
		crc ^= *p++;
		crc = crc >> 4 ^ table[crc & 15];
		crc = crc >> 4 ^ table[crc & 15];
	}
	return crc;
}

static inline uint32_t frame_checksum(unsigned char type, const void *data, size_t len)
{
	return ~frame_crc(frame_crc(~0U, &type, 1), data, len);
}

static inline unsigned char *frame_put(unsigned char *out, unsigned char c)
{
	if (c == FRAME_BEGIN || c == FRAME_END || c == FRAME_ESC) {
		*out++ = FRAME_ESC;
		c ^= FRAME_FLIP;
	}
	*out++ = c;
	return out;
}

/* Writes a frame to out, of FRAME_ENCODED_MAX bytes; len is FRAME_MAX at most. */
static inline size_t frame_encode(unsigned char *out, unsigned char type, const void *data,
				  size_t len)
{
	uint32_t sum = frame_checksum(type, data, len);
	const unsigned char *in = data;
	unsigned char *p = out;

	*p++ = FRAME_BEGIN;
	*p++ = type;
	for (size_t i = 0; i < len; i++)
		p = frame_put(p, in[i]);
	for (int i = 0; i < 4; i++)
		p = frame_put(p, sum >> 8 * i);
	*p++ = FRAME_END;
	return p - out;
}

#endif
