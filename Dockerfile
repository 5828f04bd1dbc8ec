# syntax=docker/dockerfile:1
# One image for the API, the worker, the migrations, the codec endpoint and the operator's command line; each has its own
# command. Node runs the TypeScript as it is: only the workbench's pages are built.

# To pin it by digest: docker build --build-arg NODE_IMAGE=node:24.21.0-bookworm-slim@sha256:… .
ARG NODE_IMAGE=node:24.21.0-bookworm-slim

FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# A `file:` dependency for development: npm reads its package.json even if it does not install it.
COPY dev/node dev/node
# Temporal's package has its native library for every platform, 30 MB each. Keep only the one needed.
RUN npm ci --omit=dev --no-audit --no-fund \
  && find node_modules/@temporalio/core-bridge/releases -mindepth 1 -maxdepth 1 \
    ! -name "$(uname -m)-unknown-linux-gnu" -exec rm -r {} +

FROM ${NODE_IMAGE} AS workbench
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY dev/node dev/node
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY client client
COPY tsconfig.json ./
COPY workbench workbench
RUN npm run workbench:build

FROM ${NODE_IMAGE}
# In production, the operator's command line requires OPERATOR: everybody is the same user in here.
ENV NODE_ENV=production HOST=0.0.0.0
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY --from=workbench /app/workbench/dist workbench/dist
COPY package.json ./
COPY accounts accounts
COPY activities activities
COPY api api
COPY cards cards
COPY deposits deposits
COPY docs/partners docs/partners
COPY domain domain
COPY exports exports
COPY issuers issuers
COPY ledger ledger
COPY operator operator
COPY payments payments
COPY platform platform
COPY requests requests
COPY webhooks webhooks
COPY worker worker
COPY workflows workflows
# Bundled here, because the bundler's compiler unpacks itself into a cache, which a read-only container can't have.
RUN node platform/temporal/bundle-workflows.ts workflow-bundle.js && rm -rf /root/.cache
ENV WORKFLOW_BUNDLE=/app/workflow-bundle.js
# It writes no files: run it with a read-only root file system and without capabilities.
USER node
EXPOSE 3000 3001 3002
CMD ["node", "--import", "./platform/process/check-node.mjs", "api/main.ts"]
