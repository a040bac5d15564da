// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "screen.h"
#include "text.h"

#define ENTER "\033[?1049h\033[?25l\033[2J"
#define LEAVE "\033[?25h\033[?1049l"

static bool is_terminal(FILE *out)
{
	const char *term = getenv("TERM");

	return isatty(fileno(out)) && term && *term && strcmp(term, "dumb");
}

static bool in_foreground(FILE *out)
{
	return tcgetpgrp(fileno(out)) == getpgrp();
}

bool screen__can(FILE *out)
{
	return is_terminal(out) && in_foreground(out);
}

bool screen__has_colours(FILE *out)
{
	const char *no = getenv("NO_COLOR");

	return is_terminal(out) && !(no && *no);
}

void screen__enter(struct screen *s)
{
	struct termios raw;

	if (!in_foreground(s->out))
		return;
	/* Signals from the keyboard stay what they are. */
	s->key_fd = -1;
	if (isatty(STDIN_FILENO) && !tcgetattr(STDIN_FILENO, &raw)) {
		if (!s->raw)
			s->old = raw;
		raw.c_lflag &= ~(ICANON | ECHO);
		raw.c_cc[VMIN] = 1;
		raw.c_cc[VTIME] = 0;
		s->raw = !tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
		s->key_fd = s->raw ? STDIN_FILENO : -1;
	}
	fputs(ENTER, s->out);
	fflush(s->out);
	s->on = true;
}

void screen__leave(struct screen *s)
{
	if (!s->on)
		return;
	s->on = false;
	/* In the background it is somebody else's, who has it as it should be. */
	if (in_foreground(s->out)) {
		fputs(LEAVE, s->out);
		fflush(s->out);
		if (s->raw)
			tcsetattr(STDIN_FILENO, TCSADRAIN, &s->old);
	}
	s->raw = false;
	s->key_fd = -1;
}

/* Prints what of a line fits into @columns; returns the end of the line. What was there is cleared
 * before: behind the last column many terminals still are at it, and would clear that. */
static const char *draw_line(FILE *out, const char *line, unsigned columns)
{
	unsigned used = 0;

	fputs("\033[K", out);
	while (*line && *line != '\n') {
		if (*line == '\033') {
			/* It is there in any case, so that a colour that began also ends. */
			while (*line && *line != 'm' && *line != '\n')
				fputc(*line++, out);
			if (*line == 'm')
				fputc(*line++, out);
			continue;
		}
		used += text__columns(*line);
		if (used <= columns)
			fputc(*line, out);
		line++;
	}
	return line;
}

/* One that does not tell has the size that terminals always had. */
static void get_size(FILE *out, struct winsize *size)
{
	if (!ioctl(fileno(out), TIOCGWINSZ, size) && size->ws_row && size->ws_col)
		return;
	size->ws_row = 24;
	size->ws_col = 80;
}

unsigned screen__columns(const struct screen *s)
{
	struct winsize size = {};

	get_size(s->out, &size);
	return size.ws_col;
}

void screen__draw(struct screen *s, const char *text)
{
	struct winsize size = {};
	unsigned row;

	if (!s->on || !in_foreground(s->out))
		return;
	get_size(s->out, &size);
	fputs("\033[H", s->out);
	for (row = 0; *text && row < size.ws_row; row++) {
		if (row)
			fputs("\r\n", s->out);
		text = draw_line(s->out, text, size.ws_col);
		text += *text == '\n';
	}
	if (row < size.ws_row)
		fputs("\r\n\033[J", s->out);
	fflush(s->out);
}

int screen__key(struct screen *s)
{
	unsigned char key;
	ssize_t n;

	if (s->key_fd < 0)
		return 0;
	n = read(s->key_fd, &key, 1);
	if (n == 1)
		return key;
	return n < 0 && (errno == EINTR || errno == EAGAIN) ? 0 : -1;
}
