"""The model without torch: export to ONNX, and a session that runs it."""
