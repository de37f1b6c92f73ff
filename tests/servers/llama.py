"""A llama.cpp server with a tiny model of random weights, which this program makes first.

The model knows single bytes, answers nonsense, and is as quick as a model can be. With a grammar, as llama.cpp
derives one from tools that must be called, the nonsense is well-formed.
"""

import os
import sys
import threading

import gguf
import numpy
import xllamacpp

EMBED, HEADS, FEED, LAYERS = 64, 4, 128, 1

# Calls look as those of the Qwen models do; llama.cpp makes the grammar of calls from this.
TEMPLATE = r"""
{%- if tools %}
    {{- '<|im_start|>system\n# Tools\n\n<tools>' }}
    {%- for tool in tools %}{{- '\n' }}{{- tool | tojson }}{%- endfor %}
    {{- '\n</tools>\n\nCalls are JSON objects within XML tags:\n<tool_call>' }}
    {{- '{"name": <function-name>, "arguments": <args-json-object>}</tool_call><|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'tool' %}
        {{- '<|im_start|>user\n<tool_response>\n' + message.content + '\n</tool_response><|im_end|>\n' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\n' }}
        {%- if message.content %}{{- message.content }}{%- endif %}
        {%- for call in message.tool_calls or [] %}
            {%- if call.function %}{%- set call = call.function %}{%- endif %}
            {{- '<tool_call>{"name": "' + call.name + '", "arguments": ' }}
            {{- call.arguments | tojson }}
            {{- '}</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}
"""


def write_model(path: str, context: int) -> None:
    random = numpy.random.default_rng(7)
    # SentencePiece wants these three first, then one token for each byte.
    tokens = [("<unk>", 2), ("<s>", 3), ("</s>", 3)] + [(f"<0x{byte:02X}>", 6) for byte in range(256)]
    tokens += [(chr(byte), 1) for byte in range(33, 127)] + [("\u2581", 1)]
    # A request can make this one likely, which is how a call begins.
    tokens += [("<tool_call>", 4)]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("random bytes")
    writer.add_context_length(context)
    writer.add_embedding_length(EMBED)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(EMBED // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list([text for text, _ in tokens])
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([kind for _, kind in tokens])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template(TEMPLATE)

    def tensor(name: str, *shape: int) -> None:
        writer.add_tensor(name, weights(*shape))

    def weights(*shape: int) -> numpy.ndarray:
        return (random.standard_normal(shape) * 0.5).astype(numpy.float32)

    def ones(name: str) -> None:
        writer.add_tensor(name, numpy.ones(EMBED, dtype=numpy.float32))

    tensor("token_embd.weight", len(tokens), EMBED)
    ones("output_norm.weight")
    output = weights(len(tokens), EMBED)
    # The end is likelier than any other token, or answers would be as long as they may.
    output[2] *= 2
    writer.add_tensor("output.weight", output)
    for layer in range(LAYERS):
        ones(f"blk.{layer}.attn_norm.weight")
        ones(f"blk.{layer}.ffn_norm.weight")
        for name in ["attn_q", "attn_k", "attn_v", "attn_output"]:
            tensor(f"blk.{layer}.{name}.weight", EMBED, EMBED)
        tensor(f"blk.{layer}.ffn_gate.weight", FEED, EMBED)
        tensor(f"blk.{layer}.ffn_up.weight", FEED, EMBED)
        tensor(f"blk.{layer}.ffn_down.weight", EMBED, FEED)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    path, context = sys.argv[1], int(sys.argv[2])
    if not os.path.exists(path):
        write_model(path, context)
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx = context
    params.n_parallel = 1
    # A second thread would only wait for the first, and keep a core from everybody else while it does.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.n_gpu_layers = 0
    params.port = 0 if len(sys.argv) < 4 else int(sys.argv[3])
    params.endpoint_slots = True
    params.use_jinja = True
    params.warmup = False
    server = xllamacpp.Server(params)
    print(f"listening on {server.listening_address}", flush=True)
    threading.Event().wait()


main()
