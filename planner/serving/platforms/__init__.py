"""Systems that start engines on a cluster: Dynamo, Triton, Ray Serve, llm-d and KServe, plain launch lines."""
