/* The C ABI between the runtime and a kernel plugin. C11; a plugin exports one symbol,
 * ashlar_plugin_table().
 *
 * Threads: one engine thread owns a device and makes every call on it; `rows`, `probe` and `open`
 * may be called from any thread. Errors: functions return ASHLAR_OK or ASHLAR_FAILED; after a
 * failure last_error() gives one line for that thread. Sizes are in elements unless a name says
 * bytes. Tensors are borrowed for the call (for the step, on a real stream). A pointer in the table
 * marked "optional" may be NULL. New members go to the end, and table_bytes tells which exist; any
 * other change raises ASHLAR_PLUGIN_ABI. */
#ifndef ASHLAR_PLUGIN_H_
#define ASHLAR_PLUGIN_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ASHLAR_PLUGIN_ABI 2u
#define ASHLAR_PLUGIN_SYMBOL "ashlar_plugin_table"

enum { ASHLAR_OK = 0, ASHLAR_FAILED = 1 };

/* Element types. Block types are GGUF's: `elements` consecutive values of a row share one block. */
typedef enum ashlar_dtype {
  ASHLAR_F32 = 0,
  ASHLAR_F16,
  ASHLAR_BF16,
  ASHLAR_I32,
  ASHLAR_I8,
  ASHLAR_F8_E4M3, /* finite values only: the largest is 448 */
  ASHLAR_Q8_0 = 16,
  ASHLAR_Q4_0,
  ASHLAR_Q4_1,
  ASHLAR_Q5_0,
  ASHLAR_Q5_1,
  ASHLAR_Q4_K,
  ASHLAR_Q5_K,
  ASHLAR_Q6_K
} ashlar_dtype;
#define ASHLAR_DTYPE_BIT(t) (1u << (t))

/* ---------------------------------------------------------------- attention rows: capability data
 */

/* KV-cache kinds, in the order of the kind strings in docs/glossary.md. */
typedef enum ashlar_kind {
  ASHLAR_FULL_ATTENTION = 0,
  ASHLAR_MLA_ATTENTION,
  ASHLAR_SLIDING_WINDOW,
  ASHLAR_SLIDING_WINDOW_MLA,
  ASHLAR_CHUNKED_LOCAL_ATTENTION,
  ASHLAR_SINK_FULL_ATTENTION,
  ASHLAR_CROSS_ATTENTION,
  ASHLAR_ENCODER_ONLY_ATTENTION,
  ASHLAR_MAMBA
} ashlar_kind;
#define ASHLAR_KIND_BIT(k) (1u << (k))

/* Physical order of L(ayer) B(lock) H(ead slot) N(token) C(ontent bytes), outermost first. */
typedef enum ashlar_layout {
  ASHLAR_LBHNC = 1,
  ASHLAR_LBNHC,
  ASHLAR_LHBNC,
  ASHLAR_BLHNC,
  ASHLAR_BLNHC,
  ASHLAR_BHLNC
} ashlar_layout;

typedef enum ashlar_feature {
  ASHLAR_HAS_SINKS = 1 << 0,
  ASHLAR_HAS_WINDOW = 1 << 1, /* masks keys older than `window` */
  ASHLAR_IS_MLA = 1 << 2,
  ASHLAR_HAS_KV_CONNECTOR = 1 << 3, /* its pages may be moved by an offload tier */
  ASHLAR_IS_BATCH_INVARIANT =
      1 << 4, /* a token's result does not depend on its neighbours in the batch */
  ASHLAR_HAS_NON_CAUSAL = 1 << 5,
  ASHLAR_READS_LAYOUT_STRIDES = 1 << 6, /* takes any layout: strides are run-time values */
  ASHLAR_IS_SPARSE = 1 << 7,            /* reads only the keys that an indexer picked */
  ASHLAR_HAS_MM_PREFIX = 1 << 8,        /* the tokens of an image see each other */
  ASHLAR_HAS_HEAD_SCALES = 1 << 9,      /* one scale of a quantised cache for each head */
  ASHLAR_HAS_PREFIX_WINDOW = 1 << 10,   /* all of the prompt, and a window of what was generated */
  ASHLAR_HAS_PCP = 1 << 11,             /* prefill context parallel */
  ASHLAR_HAS_DCP = 1 << 12,             /* decode context parallel */
  ASHLAR_NEEDS_HOST_QUERY_LENGTHS = 1 << 13 /* query lengths may not change on the device */
} ashlar_feature;

typedef enum ashlar_verification {
  ASHLAR_TESTED = 0,       /* conformance passed on such a device */
  ASHLAR_COMPILE_VERIFIED, /* compiled, logic checked elsewhere, never run on such a device */
  ASHLAR_PLANNED           /* no kernel yet: plan shows it, serve refuses it */
} ashlar_verification;

/* A block size in tokens: exactly `tokens`, or any positive multiple of it. `tokens` 0 ends a list.
 */
typedef struct ashlar_block_rule {
  int32_t tokens;
  int32_t multiple; /* 0 exact, 1 any multiple */
} ashlar_block_rule;

/* What a device must be for the row. Compared only with a device of the same unit. */
typedef enum ashlar_capability_unit {
  ASHLAR_CAP_ANY = 0,
  ASHLAR_CAP_CUDA,
  /* major * 10 + minor: 90 */ ASHLAR_CAP_GFX, /* hex digits as a number: 0x942 */
  ASHLAR_CAP_CPU                               /* ashlar_cpu_isa bits, all required */
} ashlar_capability_unit;

typedef struct ashlar_row {
  const char* name;                   /* unique over all platforms: "CPU_PAGED" */
  const char* platform;               /* "cpu", "reference", "cuda", "hip" */
  uint32_t kinds;                     /* ASHLAR_KIND_BIT */
  uint32_t dtypes;                    /* of q and out; ASHLAR_DTYPE_BIT */
  uint32_t kv_dtypes;                 /* ASHLAR_DTYPE_BIT */
  int32_t head_sizes[16];             /* 0 ends; empty: any multiple of head_multiple */
  int32_t head_multiple;              /* with an empty list; 1 = any */
  ashlar_block_rule kernel_blocks[8]; /* what the kernel takes */
  ashlar_block_rule
      manager_blocks[4];   /* what the block pool must use; empty: any multiple of a kernel block */
  int32_t preferred_block; /* tokens; 0: no preference */
  uint8_t layouts[8];      /* ashlar_layout, most preferred first, 0 ends; empty: any */
  int32_t head_slots;      /* H; 0: the layer's KV heads */
  uint32_t features;       /* ashlar_feature */
  ashlar_capability_unit capability_unit;
  uint32_t capability_min, capability_max; /* inclusive; for GFX a row lists one device range, for
                                              CPU min is a bit set */
  const char*
      built_for[12]; /* architectures in this binary, NULL ends; empty: needs no device code */
  ashlar_verification verification;
} ashlar_row;

/* ---------------------------------------------------------------- tensors */

/* Row-major view. shape[0] is outermost; stride in bytes; for block types stride[rank-1] is unused.
 */
typedef struct ashlar_tensor {
  void* data;
  ashlar_dtype dtype;
  int32_t rank;
  int64_t shape[4];
  int64_t stride[4];
} ashlar_tensor;

/* One layer's cache of one group as a kernel sees it: entry (block b, head slot h, token n) starts
 * at base + b*block_stride + h*head_stride + n*token_stride and holds head_dim K values, then
 * head_dim_v V values. */
typedef struct ashlar_kv_view {
  void* base;
  int64_t block_stride, head_stride, token_stride; /* bytes */
  int64_t blocks;                                  /* kernel blocks */
  ashlar_dtype dtype;
  int32_t block_tokens; /* kernel block */
  int32_t kv_heads, head_dim, head_dim_v;
} ashlar_kv_view;

/* ---------------------------------------------------------------- device, stream, weights */

typedef struct ashlar_device ashlar_device;
typedef struct ashlar_stream ashlar_stream; /* NULL on plugins that run at once */
typedef struct ashlar_weight ashlar_weight;
typedef struct ashlar_graph ashlar_graph;
typedef struct ashlar_event ashlar_event;

typedef struct ashlar_open {
  int32_t index;   /* which device of the platform */
  int32_t threads; /* host plugins: workers including the caller; 0: all that the process may use */
  int32_t invariant; /* 1: only batch-invariant ops will be asked for; ops must then be so */
} ashlar_open;

/* Answer of probe: 0 found, 1 absent, 2 noDriver, 3 noAccess, 4 broken. */
typedef struct ashlar_probe {
  int32_t outcome;
  int32_t devices;
  char detail[256]; /* e.g. the instruction sets chosen, or why it is broken */
} ashlar_probe;

/* A stack of matrices [rows_i, cols] with the same cols, used as one matrix [sum rows_i, cols]: q,
 * k, v or gate, up. */
#define ASHLAR_MAX_PARTS 4
typedef struct ashlar_weight_desc {
  int32_t parts;
  ashlar_dtype dtype[ASHLAR_MAX_PARTS];
  int64_t rows[ASHLAR_MAX_PARTS];
  int64_t cols;
  int32_t gathered; /* 1: rows are also read singly by embed */
  /* 1: float parts are kept as F8_E4M3, each row with a float32 scale, its largest magnitude / 448.
   * Products may bring x to F8_E4M3 too, each row by its own such scale. Never with gathered. */
  int32_t fp8;
} ashlar_weight_desc;

/* ---------------------------------------------------------------- op arguments */

typedef enum ashlar_activation { ASHLAR_SILU = 0, ASHLAR_GELU_TANH } ashlar_activation;
typedef enum ashlar_rope_style {
  ASHLAR_ROPE_HALF = 0,
  /* pairs (i, i + d/2) */ ASHLAR_ROPE_INTERLEAVED /* (2i, 2i+1) */
} ashlar_rope_style;

/* From the fused projection to attention's inputs: optional RMS norm of each q and k head, rotary
 * embedding of q and k, q copied to q_out, k and v written to the cache at slots[t] (block *
 * block_tokens + offset; negative: not written). The angle of pair i is the float32 product
 * positions[t] * inv_freq[i]. */
typedef struct ashlar_qkv_prepare {
  ashlar_tensor qkv;   /* [tokens, (q_heads + 2*kv_heads) * head_dim] q heads, k heads, v heads */
  ashlar_tensor q_out; /* [tokens, q_heads, head_dim] */
  ashlar_tensor q_norm, k_norm; /* f32 [head_dim]; data NULL: none */
  float eps;
  const int32_t* positions; /* [tokens] */
  const float* inv_freq;    /* [rotary_dim / 2], host and device readable; NULL: no rotation */
  int32_t rotary_dim;
  float rope_scale; /* cos and sin are multiplied by it; 1 for most */
  ashlar_rope_style rope_style;
  ashlar_kv_view kv;
  const int64_t* slots; /* [tokens] */
} ashlar_qkv_prepare;

/* Causal attention over the paged cache. Query token i of sequence s (query_start[s] <= i <
 * query_start[s+1]) has position context[s] - (query_start[s+1] - i) and sees keys 0..position,
 * with window > 0 only those > position - window. Scores are scale * q.k; entries of block_table
 * that no visible key needs are never read. On a device with memory of its own a sequence of
 * context 0 is idle: it has one query token, whose rows of `out` stay as they were. The arrays of
 * this op and of qkv_prepare, and what the cache holds of keys before the step's own, have been
 * there since the last copy_in: a plugin may read them before the ops ahead have ended. It may write
 * values of a sequence's last block past its context, and nothing else of the cache. */
typedef struct ashlar_attention {
  ashlar_tensor q;   /* [tokens, q_heads, head_dim] */
  ashlar_tensor out; /* [tokens, q_heads, head_dim_v] */
  ashlar_kv_view kv;
  const int32_t* block_table; /* [sequences, table_stride] kernel block ids */
  int64_t table_stride;
  const int32_t* query_start; /* [sequences + 1] */
  const int32_t* context;     /* [sequences] tokens in the cache, this step's included */
  int32_t sequences;
  int32_t max_query, max_context; /* over the sequences */
  float scale;
  int32_t window; /* tokens, 0: full */
} ashlar_attention;

/* A product with what stands around it in a layer: out = residual + act(norm(x) * weight^T + bias).
 * Of these only x and weight are always there; what was normalised is rounded to x's type. */
typedef struct ashlar_projection {
  ashlar_tensor out; /* [m, sum rows]; [m, sum rows / 2] when gated */
  ashlar_tensor x;   /* [m, cols] */
  const ashlar_weight* weight;
  ashlar_tensor bias; /* f32 [sum rows]; data NULL: none. Never with gated */
  ashlar_tensor norm; /* f32 [cols], RMS norm of each row of x; data NULL: x as it is */
  float eps;
  ashlar_tensor residual; /* shape and type of out, may be out; data NULL: none. Never with gated */
  int32_t gated;          /* 1: out = act(gate) * up, where the first half of the rows are gates */
  ashlar_activation activation; /* read when gated */
} ashlar_projection;

/* One decoder layer of a step, as the arguments of its ops in the order in which they run: project
 * qkv, qkv_prepare, attention of row `row`, project output, project gate_up, project down. */
typedef struct ashlar_layer {
  ashlar_projection qkv; /* norm(hidden) * weight^T + bias */
  ashlar_qkv_prepare prepare;
  int32_t row;
  ashlar_attention attention;
  ashlar_projection output;  /* hidden += attention's out * weight^T + bias */
  ashlar_projection gate_up; /* act(gate) * up of norm(hidden) */
  ashlar_projection down;    /* hidden += gate_up's out * weight^T */
} ashlar_layer;

/* How one row of logits becomes an id: the scores over temperature, cut to the top_k best, of those
 * to the fewest whose mass reaches top_p, of those to what weighs at least min_p of the best; then
 * the first, in an order that is the same each time, at which the summed mass passes `uniform`. */
typedef struct ashlar_draw {
  float temperature; /* 0: the best, of equals the lowest id */
  int32_t top_k;     /* 0: all */
  float top_p;       /* 1: all */
  float min_p;       /* 0: all */
  double uniform;    /* in [0, 1) */
} ashlar_draw;

/* ---------------------------------------------------------------- the table */

typedef struct ashlar_plugin {
  uint32_t abi;          /* ASHLAR_PLUGIN_ABI */
  uint32_t table_bytes;  /* sizeof(ashlar_plugin) of the plugin's build */
  const char* name;      /* "cpu": the platform whose rows it carries out */
  const char* memory;    /* plugins with the same word share pointers: "host" */
  int32_t invariant_ops; /* 1: with open.invariant every op below is batch-invariant */

  const ashlar_row* rows;
  int32_t row_count;

  int (*probe)(ashlar_probe* out);
  const char* (*last_error)(void);

  int (*open)(const ashlar_open* args, ashlar_device** out);
  void (*close)(ashlar_device* device);
  int (*alloc)(ashlar_device* device, int64_t bytes, void** out); /* 64-byte aligned, zeroed */
  void (*release)(ashlar_device* device, void* memory);
  int (*copy_in)(ashlar_device* device, ashlar_stream* stream, void* to, const void* from,
                 int64_t bytes);
  int (*copy_out)(ashlar_device* device, ashlar_stream* stream, void* to, const void* from,
                  int64_t bytes);
  int (*stream_create)(ashlar_device* device, ashlar_stream** out);     /* optional */
  void (*stream_destroy)(ashlar_device* device, ashlar_stream* stream); /* optional */
  int (*stream_sync)(ashlar_device* device, ashlar_stream* stream);     /* optional */
  int (*graph_begin)(ashlar_device* device, ashlar_stream* stream);     /* optional, all four */
  int (*graph_end)(ashlar_device* device, ashlar_stream* stream, ashlar_graph** out);
  int (*graph_launch)(ashlar_device* device, ashlar_stream* stream, ashlar_graph* graph);
  void (*graph_destroy)(ashlar_device* device, ashlar_graph* graph);

  /* Bytes that the plugin will own for this weight beside the caller's sources. A part of which it
   * owns nothing (asked about alone, the answer is 0) is read in place: its source must outlive the
   * weight, those of other parts need not. weight_create takes sources in host memory (unaligned
   * allowed), one pointer a part. */
  int64_t (*weight_bytes)(const ashlar_weight_desc* desc);
  int (*weight_create)(ashlar_device* device, const ashlar_weight_desc* desc,
                       const void* const* sources, ashlar_weight** out);
  void (*weight_destroy)(ashlar_device* device, ashlar_weight* weight);

  /* out[i] = scale * row ids[i] of weight. out [n, cols] */
  int (*embed)(ashlar_device* device, ashlar_stream* stream, ashlar_tensor out,
               const ashlar_weight* weight, const int32_t* ids, float scale);
  /* out[i] = x[rows[i]]. out [n, cols], x [m, cols] */
  int (*gather)(ashlar_device* device, ashlar_stream* stream, ashlar_tensor out, ashlar_tensor x,
                const int32_t* rows);
  /* out = x / sqrt(mean(x^2) + eps) * weight, by rows; out may be x. x, out [n, cols], weight f32
   * [cols] */
  int (*rms_norm)(ashlar_device* device, ashlar_stream* stream, ashlar_tensor out, ashlar_tensor x,
                  ashlar_tensor weight, float eps);
  /* out = x * weight^T + bias. x [m, cols], out [m, sum rows], bias f32 [sum rows] or data NULL */
  int (*matmul)(ashlar_device* device, ashlar_stream* stream, ashlar_tensor out, ashlar_tensor x,
                const ashlar_weight* weight, ashlar_tensor bias);
  int (*qkv_prepare)(ashlar_device* device, ashlar_stream* stream, const ashlar_qkv_prepare* args);
  /* Carries out row `row` of `rows`. */
  int (*attention)(ashlar_device* device, ashlar_stream* stream, int32_t row,
                   const ashlar_attention* args);
  /* out = act(gate) * up. gate_up [n, 2 * width] gate first, out [n, width] */
  int (*gated_activation)(ashlar_device* device, ashlar_stream* stream, ashlar_tensor out,
                          ashlar_tensor gate_up, ashlar_activation activation);
  /* sum += x. Both [n, cols] */
  int (*add)(ashlar_device* device, ashlar_stream* stream, ashlar_tensor sum, ashlar_tensor x);
  /* Copies whole blocks inside one allocation: n pairs (from, to) of byte offsets, `bytes` each. */
  int (*copy_blocks)(ashlar_device* device, ashlar_stream* stream, void* base, const int64_t* pairs,
                     int32_t n, int64_t bytes);
  /* How often `attention` carried out row `row` on this device. */
  int64_t (*row_launches)(const ashlar_device* device, int32_t row);

  /* The element type of tensors between ops with which the plugin is fastest. */
  ashlar_dtype activations;
  int (*project)(ashlar_device* device, ashlar_stream* stream,
                 const ashlar_projection* args); /* optional: the parts give the same */
  /* Optional. logits f32 [n, vocab]; draws and ids [n] in device memory. An id is -1 when a number
   * of its row is not finite. */
  int (*sample)(ashlar_device* device, ashlar_stream* stream, ashlar_tensor logits,
                const ashlar_draw* draws, int32_t* ids);
  /* Optional. Where ids[i] is -1 - r, it becomes from[r]. All in device memory. */
  int (*resolve_ids)(ashlar_device* device, ashlar_stream* stream, int32_t* ids,
                     const int32_t* from, int32_t n);
  /* Optional, all six: host memory that copies on a stream need not wait for, and marks on a
   * stream. event_wait returns when the device has passed the mark last recorded. */
  int (*host_alloc)(ashlar_device* device, int64_t bytes, void** out);
  void (*host_release)(ashlar_device* device, void* memory);
  int (*event_create)(ashlar_device* device, ashlar_event** out);
  void (*event_destroy)(ashlar_device* device, ashlar_event* event);
  int (*event_record)(ashlar_device* device, ashlar_stream* stream, ashlar_event* event);
  int (*event_wait)(ashlar_device* device, ashlar_event* event);
  /* Optional. Layers of a step in which each sequence has one token, one after another: the same as
   * their ops but for what is rounded between these. Of what ops leave, `hidden` and the cache are
   * there afterwards; the outs of qkv, prepare, attention and gate_up may hold anything. A plugin
   * that leaves such a step to its ops says so by *taken 0, and has then launched nothing; else
   * *taken is 1. */
  int (*layers)(ashlar_device* device, ashlar_stream* stream, const ashlar_layer* layers,
                int32_t count, int32_t* taken);
} ashlar_plugin;

/* Never NULL; the same pointer each time. */
const ashlar_plugin* ashlar_plugin_table(void);
typedef const ashlar_plugin* (*ashlar_plugin_table_fn)(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ASHLAR_PLUGIN_H_ */
