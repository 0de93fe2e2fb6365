"""OpenTelemetry: what agents export over OTLP/HTTP. Two encodings become one noun, dialects find the skills in it."""
