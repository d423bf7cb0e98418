# One image for web, worker, beat and commands: see docs/operate.md. Each RUN is a target of the Makefile.
FROM python:3.11.16-bookworm@sha256:b99029c95d3d37fb1e4e76d287f7984373dca77c665885986e31b2c95260c13c AS build
WORKDIR /srv/checkout
COPY Makefile requirements.lock ./
RUN make install
COPY . .
RUN make static

FROM python:3.11.16-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b
LABEL org.opencontainers.image.title="Merchant Checkout Service"
WORKDIR /srv/checkout
COPY --from=build /srv/checkout /srv/checkout
ARG COMMIT=
ENV COMMIT=$COMMIT PATH=/srv/checkout/.venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 WEB_ADDRESS=0.0.0.0:8000
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=4s --start-period=30s CMD ["python", "-m", "config.deploy.probe"]
CMD ["python", "-m", "gunicorn", "--config", "config/gunicorn.py", "config.wsgi"]
