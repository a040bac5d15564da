/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFCOST_SCREEN_H
#define BPFCOST_SCREEN_H

#include <stdbool.h>
#include <stdio.h>
#include <termios.h>

/*
 * A terminal on which text is drawn over and over in the same place, by the control sequences that
 * all terminals of today have (ECMA-48, and xterm's alternate screen): what was on it before comes
 * back in the end.
 */
struct screen {
	FILE *out;
	int key_fd; /* keys are read from it, one by one, without echo; -1: from nowhere */
	bool on;
	bool raw;
	struct termios old;
};

/* Whether @out is a terminal that can be drawn on, by us: one in whose foreground we are. */
bool screen__can(FILE *out);
/* Whether @out takes colours: a terminal, and the user has not set NO_COLOR. */
bool screen__has_colours(FILE *out);

/* Takes the terminal: clears it, hides the cursor, and reads keys if stdin is the terminal as well.
 * Also to be called after the process was stopped and goes on. Does nothing if that is not possible
 * now, because the process is in the background. */
void screen__enter(struct screen *s);
/* Gives the terminal back as it was. */
void screen__leave(struct screen *s);

/* How wide it is now, in columns. */
unsigned screen__columns(const struct screen *s);

/* Draws as much of the text as there is room for. Escape sequences for colours (SGR) take none. */
void screen__draw(struct screen *s, const char *text);

/* The key that was pressed, 0 if there is none, -1 if the terminal is gone. */
int screen__key(struct screen *s);

#endif
