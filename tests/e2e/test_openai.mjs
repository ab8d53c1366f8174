// The official OpenAI client for Node, unmodified, against a running server.
//
//     npm ci --prefix tests/e2e
//     node tests/e2e/test_openai.mjs --url http://127.0.0.1:8000 --model demo [--key KEY]

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { parseArgs } from 'node:util';
import OpenAI from 'openai';

const { values: options } = parseArgs({
  options: {
    url: { type: 'string', default: 'http://127.0.0.1:8000' },
    model: { type: 'string', default: 'demo' },
    key: { type: 'string', default: 'none' },
  },
});

const model = options.model;
const client = new OpenAI({ baseURL: options.url + '/v1', apiKey: options.key, timeout: 120_000 });
const messages = [{ role: 'user', content: 'Hello!' }];
// No prefix of one request helps the other, so that equal requests run alike.
const fresh = () => ({ temperature: 0, cache_salt: randomUUID() });

// A client that counts what it sends.
function counting(more = {}) {
  let sent = 0;
  const counted = new OpenAI({
    baseURL: options.url + '/v1',
    apiKey: options.key,
    fetch: (...args) => {
      sent += 1;
      return fetch(...args);
    },
    ...more,
  });
  return { counted, sent: () => sent };
}

async function collect(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

test('models: list, retrieve, unknown', async () => {
  const names = (await collect(client.models.list())).map((entry) => entry.id);
  assert.ok(names.includes(model));
  assert.equal((await client.models.retrieve(model)).id, model);
  await assert.rejects(client.models.retrieve('no-such-model'), (error) => {
    assert.ok(error instanceof OpenAI.NotFoundError);
    assert.equal(error.code, 'model_not_found');
    return true;
  });
});

test('completions: plain and stream agree', async () => {
  const body = { model, prompt: 'Once upon a time', max_tokens: 24 };
  const plain = await client.completions.create({ ...body, ...fresh() });
  const chunks = await collect(
    await client.completions.create({ ...body, ...fresh(), stream: true }));
  assert.equal(chunks.map((chunk) => chunk.choices[0].text).join(''), plain.choices[0].text);
  assert.equal(chunks.at(-1).choices[0].finish_reason, plain.choices[0].finish_reason);
  for (const chunk of chunks.slice(0, -1)) assert.equal(chunk.choices[0].finish_reason, null);
});

test('chat: plain and stream agree, usage comes last', async () => {
  const body = { model, messages, max_completion_tokens: 24 };
  const plain = await client.chat.completions.create({ ...body, ...fresh() });
  assert.equal(plain.choices[0].message.refusal, null);
  assert.equal(plain.choices[0].logprobs, null);
  const chunks = await collect(await client.chat.completions.create(
    { ...body, ...fresh(), stream: true, stream_options: { include_usage: true } }));
  const text = chunks.map((chunk) => chunk.choices[0]?.delta?.content ?? '').join('');
  assert.equal(text, plain.choices[0].message.content);
  assert.deepEqual(chunks.at(-1).choices, []);
  assert.equal(chunks.at(-1).usage.completion_tokens, plain.usage.completion_tokens);
  for (const chunk of chunks.slice(0, -1)) assert.equal(chunk.usage, null);
});

test('chat: the stream helper of the client', async () => {
  const runner = client.chat.completions.stream({ model, messages, max_tokens: 8 });
  const final = await runner.finalChatCompletion();
  assert.ok(['stop', 'length'].includes(final.choices[0].finish_reason));
});

test('chat: logprob bytes are the answer', async () => {
  const answer = await client.chat.completions.create(
    { model, messages, max_tokens: 12, logprobs: true, top_logprobs: 2, ...fresh() });
  const { content } = answer.choices[0].logprobs;
  assert.equal(content.length, answer.usage.completion_tokens);
  const joined = Buffer.concat(content.map((entry) => Buffer.from(entry.bytes)));
  assert.equal(joined.toString(), answer.choices[0].message.content);
  for (const entry of content) assert.equal(entry.top_logprobs.length, 2);
});

test('stop strings and n', async () => {
  const body = { model, prompt: 'Once upon a time', max_tokens: 32, ignore_eos: true };
  const whole = (await client.completions.create({ ...body, ...fresh() })).choices[0].text;
  const middle = [...whole].slice([...whole].length / 2);
  const stop = middle.slice(0, 3).join('');
  const cut = await client.completions.create({ ...body, ...fresh(), stop });
  assert.equal(cut.choices[0].text, whole.slice(0, whole.indexOf(stop)));
  assert.equal(cut.choices[0].finish_reason, 'stop');
  const several = await client.chat.completions.create({ model, messages, n: 3, max_tokens: 4 });
  assert.deepEqual(several.choices.map((choice) => choice.index), [0, 1, 2]);
});

test('errors name their field and are sent once', async () => {
  const { counted, sent } = counting();
  await assert.rejects(
    counted.chat.completions.create({ model, messages, temperature: 9 }),
    (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError);
      assert.equal(error.param, 'temperature');
      assert.equal(error.code, 'invalid_value');
      assert.equal(error.type, 'invalid_request_error');
      assert.ok(error.requestID);
      return true;
    });
  assert.equal(sent(), 1);
  await assert.rejects(
    client.completions.create({ model, prompt: 'a', max_tokens: 10_000_000 }),
    (error) => error.code === 'context_length_exceeded');
});

test('overload is 429, and the client retries it', async () => {
  const flood = () => counting({ maxRetries: 0, timeout: 300_000 }).counted.completions.create(
    { model, prompt: Array(64).fill('a b c d'), n: 16, max_tokens: 8 });
  const floods = Promise.allSettled([flood(), flood(), flood(), flood(), flood(), flood()]);
  const { counted } = counting({ maxRetries: 60, timeout: 300_000 });
  const answer = await counted.completions.create({ model, prompt: 'a', max_tokens: 1 });
  assert.equal(answer.usage.completion_tokens, 1);
  const refused = (await floods).filter((result) => result.status === 'rejected');
  assert.ok(refused.length > 0, 'nothing was refused: the queue took six floods');
  for (const { reason } of refused) {
    assert.ok(reason instanceof OpenAI.RateLimitError, String(reason));
    assert.equal(reason.code, 'queue_full');
    assert.ok(reason.headers.get('retry-after-ms'));
  }
});

test('a client that leaves ends its stream only', async () => {
  const stream = await client.completions.create(
    { model, prompt: 'a', max_tokens: 200, ignore_eos: true, stream: true });
  for await (const chunk of stream) {
    assert.ok(chunk.choices);
    break; // closes the connection
  }
  assert.ok(await client.completions.create({ model, prompt: 'a', max_tokens: 1 }));
});
