"""
Lines as OpenTelemetry's log records, sent to a collector by OTLP over HTTP.

Nothing else imports opentelemetry.
"""
