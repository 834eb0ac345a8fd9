/*
 * The window of an example host, by SDL2. Compiled without HOSTS_WITH_SDL there is none. One
 * window, and its calls are the main thread's.
 */
#ifndef BP_HOSTS_WINDOW_H
#define BP_HOSTS_WINDOW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "hosts/console.h"

#ifdef HOSTS_WITH_SDL

#include <SDL.h>

static SDL_Window *window_itself;
static SDL_Renderer *window_renderer;

static inline bool window_open(const char *title) {
    (void)SDL_SetHint(SDL_HINT_NO_SIGNAL_HANDLERS, "1");
    if (SDL_Init(SDL_INIT_VIDEO) != 0 ||
        SDL_CreateWindowAndRenderer(640, 480, SDL_WINDOW_RESIZABLE, &window_itself,
                                    &window_renderer) != 0) {
        (void)fprintf(stderr, "no window: %s\n", SDL_GetError());
        return false;
    }
    SDL_SetWindowTitle(window_itself, title);
    return true;
}

/* Shows rows of RGBX pixels, which are copied (NULL: nothing yet), and says what its user wants.
 * The window has their size, until its user changes it. */
static inline console_wish window_turn(const uint32_t *pixels, uint32_t width, uint32_t height) {
    static SDL_Texture *texture;
    static uint32_t texture_width, texture_height;
    if (pixels != NULL && (width != texture_width || height != texture_height)) {
        SDL_DestroyTexture(texture);
        texture = SDL_CreateTexture(window_renderer, SDL_PIXELFORMAT_RGBA32,
                                    SDL_TEXTUREACCESS_STREAMING, (int)width, (int)height);
        (void)SDL_SetTextureBlendMode(texture, SDL_BLENDMODE_NONE); /* the fourth byte is padding */
        SDL_SetWindowSize(window_itself, (int)width, (int)height);
        texture_width = width;
        texture_height = height;
    }
    if (pixels != NULL && texture != NULL) {
        (void)SDL_UpdateTexture(texture, NULL, pixels, (int)width * 4);
        (void)SDL_RenderCopy(window_renderer, texture, NULL, NULL);
        SDL_RenderPresent(window_renderer);
    }
    SDL_Event event;
    console_wish wish = CONSOLE_NOTHING;
    while (wish == CONSOLE_NOTHING && SDL_PollEvent(&event)) {
        if (event.type == SDL_QUIT) {
            wish = CONSOLE_QUIT;
        } else if (event.type == SDL_KEYDOWN && event.key.keysym.sym == SDLK_F12) {
            wish = CONSOLE_REPORT;
        }
    }
    return wish;
}

#else

static inline bool window_open(const char *title) {
    (void)fprintf(stderr, "no window for %s: SDL2 was missing when this was built\n", title);
    return false;
}

static inline console_wish window_turn(const uint32_t *pixels, uint32_t width, uint32_t height) {
    (void)pixels;
    (void)width;
    (void)height;
    return CONSOLE_NOTHING;
}

#endif

#endif
