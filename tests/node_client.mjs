// What a client on the official TypeScript SDK does; test_node_client.py runs it and reads the answer.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [base, command, ...args] = process.argv.slice(2);
const env = { ...process.env, AIAML_MEMORY_DIR: base, AIAML_ENABLE_SYNC: "false" };
const client = new Client({ name: "tests", version: "1" });
await client.connect(new StdioClientTransport({ command, args, env }));

const call = (name, given) => client.callTool({ name, arguments: given });
const tools = (await client.listTools()).tools;
const memory = { agent: "claude", user: "marco", topics: ["typescript"], content: "🙂 needle\r\n" };
const stored = await call("remember", memory);
const found = await call("think", { keywords: ["needle"] });
const nothing = await call("think", { keywords: ["haystack"] });
const ids = [stored.structuredContent.memory_id, "00000000"];
const recalled = await call("recall", { memory_ids: ids });
const refused = await call("remember", { ...memory, topics: [] });
const version = client.getServerVersion();
await client.close();
console.log(JSON.stringify({ version, tools, stored, found, nothing, recalled, refused }));
