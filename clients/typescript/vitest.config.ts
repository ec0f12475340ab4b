import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    globalSetup: "test/service.ts",
    include: ["test/**/*.test.ts"],
    testTimeout: 60_000,
    hookTimeout: 180_000,
    maxWorkers: 1,
    isolate: false,
  },
});
