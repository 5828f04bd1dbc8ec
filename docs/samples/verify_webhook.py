import hashlib
import hmac
import re
import time

TOLERANCE_MS = 5 * 60 * 1000


def verify_webhook(raw_body, headers, secrets, now_ms=None):
    """Whether a webhook was sent by us, and just now.

    raw_body: the bytes as they came (Flask: request.get_data(), Django: request.body); parse them afterwards
    headers: request.headers of your framework, which ignores the case of names
    secrets: whole, with whsec_; the old and the new one while you change them
    """
    if not secrets or not all(re.fullmatch(r"whsec_\S{24,}", secret or "") for secret in secrets):
        raise ValueError("secrets must be the whole secrets of your webhook endpoint, whsec_…: is a variable not set?")
    timestamp = headers.get("X-Service-Timestamp") or ""
    received = (headers.get("X-Service-Signature") or "").encode()
    now_ms = time.time() * 1000 if now_ms is None else now_ms
    if not re.fullmatch("[0-9]{1,15}", timestamp):
        return False
    if abs(now_ms - int(timestamp)) > TOLERANCE_MS:
        return False
    return any(
        hmac.compare_digest(
            hashlib.sha256(timestamp.encode() + raw_body + secret.encode()).hexdigest().encode(), received
        )
        for secret in secrets
    )
