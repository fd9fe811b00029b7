// pg-boss: jobs sent by callers at once, each waiting for its answer; then fetched, done
// and completed by loops that do nothing else. Arguments: the address of a server with a
// schema; seconds, callers, and how many jobs are fetched and completed in one statement.
// Prints sent/s and completed/s.
const PgBoss = require("pg-boss");

const [where, seconds, callers, batch] = process.argv.slice(2);
const [connectionString, schema] = where.split("#");
const atOnce = Number(callers);
const job = (key) => ({ payment_id: key, amount: 2000, note: "x".repeat(230) });

// How often in a second it went well, for loops at once until the time is over or there
// is nothing left.
async function pace(loops, one) {
  let done = 0;
  const start = performance.now();
  const end = start + Number(seconds) * 1000;
  const loop = async (me) => {
    for (let turn = 0; performance.now() < end; turn++) {
      const more = await one(`${me}-${turn}`);
      if (more === 0) return;
      done += more;
    }
  };
  await Promise.all(Array.from({ length: loops }, (_, me) => loop(me)));
  return (done * 1000) / (performance.now() - start);
}

async function main() {
  const boss = new PgBoss({ connectionString, schema, max: atOnce, supervise: false, schedule: false });
  let failed;
  boss.on("error", (error) => (failed = error));
  await boss.start();
  await boss.createQueue("refund");
  // Nobody pays for connecting.
  await Promise.all(Array.from({ length: atOnce }, (_, me) => boss.send("refund", job(`first-${me}`))));
  console.log("ready");
  await new Promise((resolve) => process.stdin.once("data", resolve));
  console.log(
    await pace(atOnce, async (key) => {
      if ((await boss.send("refund", job(key))) === null) throw new Error("not sent");
      return 1;
    }),
  );
  console.log(
    await pace(atOnce, async () => {
      const jobs = await boss.fetch("refund", { batchSize: Number(batch) });
      if (jobs.length > 0) await boss.complete("refund", jobs.map((job) => job.id), { ok: true });
      return jobs.length;
    }),
  );
  await boss.stop({ graceful: false, wait: false });
  if (failed) throw failed;
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
