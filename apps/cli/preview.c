/* SPDX-License-Identifier: Apache-2.0
 *
 * --preview show: the clip as it forms, on a terminal. Two pixels a cell, the upper as foreground and the lower as background of a half block, in
 * 24-bit colour. A picture is drawn over the one before while nothing else was printed in between. */
#include "apps/cli/cli.h"

enum { COLUMNS_MAX = 64 };

static void cell_color(const reel_frames *p, int32_t x, int32_t y, bool is_upper)
{
    const uint8_t *rgb = p->rgb + 3 * ((int64_t)y * p->width + x);
    (void)fprintf(stderr, "\033[%d;2;%d;%d;%dm", is_upper ? 38 : 48, rgb[0], rgb[1], rgb[2]);
}

void cli_preview_show(void *user, const reel_frames *picture, int32_t step)
{
    (void)step;
    cli_progress *progress = user;
    int32_t columns = cli_terminal_width() - 1;
    columns = columns > COLUMNS_MAX ? COLUMNS_MAX : columns;
    columns = columns > picture->width ? picture->width : columns;
    if (columns < 2 || picture->height < 2) return;
    int32_t rows = (int32_t)((int64_t)columns * picture->height / picture->width) & ~1;
    rows = rows < 2 ? 2 : rows;
    int32_t lines_above = progress->preview_lines;
    cli_progress_clear(progress);
    if (lines_above > 0) (void)fprintf(stderr, "\033[%dA", (int)lines_above);
    for (int32_t y = 0; y < rows; y += 2) {
        for (int32_t x = 0; x < columns; x++) {
            int32_t px = (int32_t)((int64_t)x * picture->width / columns);
            cell_color(picture, px, (int32_t)((int64_t)y * picture->height / rows), true);
            cell_color(picture, px, (int32_t)((int64_t)(y + 1) * picture->height / rows), false);
            (void)fputs("\xE2\x96\x80", stderr); /* upper half block */
        }
        (void)fputs("\033[0m\033[K\n", stderr);
    }
    (void)fflush(stderr);
    progress->preview_lines = rows / 2;
}
