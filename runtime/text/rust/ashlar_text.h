/* Tokenizers, chat templates and grammars: the C functions of the Rust library in this folder.
 *
 * Every function that can fail returns an ashlar_status; on failure `*error` (when `error` is not
 * null) holds a fault that the caller frees with err_free, and the out-arguments are untouched. A
 * panic inside is the status ASHLAR_PANIC. Strings cross as pointer and length, UTF-8, no
 * terminator. Handles may be used by any thread at once, except a tok_decoder, and each is freed
 * once by its creator; a handle keeps alive what it was made from. Nothing is global, no function
 * reads a file, the clock or the environment, except that a render measures its own time. */
#ifndef ASHLAR_TEXT_H_
#define ASHLAR_TEXT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  ASHLAR_OK = 0,
  ASHLAR_INPUT = 1,  /* an argument from outside cannot be used */
  ASHLAR_RAISED = 2, /* a template refused its conversation with raise_exception */
  ASHLAR_FAILED = 3,
  ASHLAR_LIMIT = 4, /* stopped at a limit of steps, depth, output or time */
  ASHLAR_PANIC = 5
} ashlar_status;

/* Borrowed. As an argument, for the call; as a result, as long as the function says. */
typedef struct {
  const char* data;
  size_t size;
} ashlar_bytes;

/* Owned by the receiver, freed by ashlar_buffer_free. */
typedef struct {
  void* data;
  size_t size; /* bytes */
} ashlar_buffer;

void ashlar_buffer_free(ashlar_buffer buffer);

/* ---- err: faults ---- */
typedef struct err_fault err_fault;

enum { ERR_PLACE = 0, ERR_FOUND = 1, ERR_ALLOWED = 2, ERR_NEXT = 3 };
ashlar_bytes err_part(const err_fault* error, int part); /* lives as long as `error` */
void err_free(err_fault* error);
int err_probe_panic(err_fault** error); /* panics inside: for the test of the boundary */

/* ---- tok: tokenizers ---- */
typedef struct tok_handle tok_handle;
typedef struct tok_decoder tok_decoder;

typedef struct {
  ashlar_bytes model, pre;
  const ashlar_bytes* tokens;
  size_t token_count;
  const double* scores;
  size_t score_count;
  const int64_t* types;
  size_t type_count;
  const ashlar_bytes* merges;
  size_t merge_count;
  int32_t bos, eos;
  bool add_bos, add_eos, add_space_prefix;
} tok_vocabulary;

int tok_from_json(ashlar_bytes text, tok_handle** out, err_fault** error);
int tok_from_gguf(const tok_vocabulary* vocabulary, tok_handle** out, err_fault** error);
void tok_free(tok_handle* tok);

size_t tok_size(const tok_handle* tok);
ashlar_bytes tok_bytes(const tok_handle* tok, uint32_t id); /* lives as long as `tok` */
bool tok_is_special(const tok_handle* tok, uint32_t id);
int64_t tok_id(const tok_handle* tok, ashlar_bytes piece); /* -1: no such token */

/* `out`: uint32_t ids. */
int tok_encode(const tok_handle* tok, ashlar_bytes text, bool add_special, ashlar_buffer* out,
               err_fault** error);
int tok_decode(const tok_handle* tok, const uint32_t* ids, size_t count, bool skip_special,
               ashlar_buffer* out, err_fault** error);

tok_decoder* tok_decoder_new(const tok_handle* tok, bool skip_special);
void tok_decoder_free(tok_decoder* decoder);
/* `out` lives until the next call with `decoder`. */
int tok_decoder_push(tok_decoder* decoder, uint32_t id, ashlar_bytes* out, err_fault** error);
int tok_decoder_finish(tok_decoder* decoder, ashlar_bytes* out, err_fault** error);

/* ---- tmpl: chat templates ---- */
typedef struct tmpl_handle tmpl_handle;

int tmpl_compile(ashlar_bytes source, ashlar_bytes bos, ashlar_bytes eos, tmpl_handle** out,
                 err_fault** error);
void tmpl_free(tmpl_handle* tmpl);
/* `document`: one JSON object of variables. `now_seconds`, since 1970 in UTC, is what strftime_now
 * shows. Bounded by 1,000,000 steps, 64 nested calls, `max_milliseconds` of processor time and
 * `max_output_bytes`. */
int tmpl_render(const tmpl_handle* tmpl, ashlar_bytes document, size_t max_output_bytes,
                uint32_t max_milliseconds, int64_t now_seconds, ashlar_buffer* out,
                err_fault** error);

/* ---- gd: grammars ---- */
typedef struct gd_factory gd_factory;
typedef struct gd_grammar gd_grammar;

/* Once for a model; a tenth of a second for 50,000 tokens. `eos` ends a finished grammar. */
int gd_factory_new(const tok_handle* tok, uint32_t eos, gd_factory** out, err_fault** error);
void gd_factory_free(gd_factory* factory);
/* `kind`: "json_schema", "regex" or "lark". The grammar stands at its start. */
int gd_compile(const gd_factory* factory, ashlar_bytes kind, ashlar_bytes text, gd_grammar** out,
               err_fault** error);
void gd_free(gd_grammar* grammar);
/* Token i may come next when bit i % 32 of word i / 32 is set. Needs tok_size / 32 words, rounded
 * up; words beyond are cleared. A stopped grammar allows `eos` alone. */
int gd_mask(const gd_grammar* grammar, uint32_t* words, size_t count, err_fault** error);
int gd_accept(const gd_grammar* grammar, uint32_t id, err_fault** error);
int gd_rollback(const gd_grammar* grammar, size_t tokens, err_fault** error);
int gd_forced(const gd_grammar* grammar, ashlar_buffer* out, err_fault** error); /* uint32_t ids */
/* A stopped grammar accepts no more tokens, the end of sequence included. */
bool gd_is_stopped(const gd_grammar* grammar);

#ifdef __cplusplus
}
#endif
#endif
