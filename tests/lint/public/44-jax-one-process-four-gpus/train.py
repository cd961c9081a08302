import jax
import jax.numpy as jnp
import optax


def loss_fn(params, batch):
    return jnp.mean((batch["x"] @ params - batch["y"]) ** 2)


def main() -> None:
    mesh = jax.make_mesh((jax.local_device_count(),), ("data",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    optimizer = optax.adamw(1e-3)
    params = jnp.zeros((128, 1))
    state = optimizer.init(params)

    @jax.jit
    def step(params, state, batch):
        grads = jax.grad(loss_fn)(params, batch)
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(params, updates), state

    key = jax.random.PRNGKey(0)
    for _ in range(1000):
        key, sub = jax.random.split(key)
        x = jax.random.normal(sub, (4096, 128))
        batch = jax.device_put({"x": x, "y": x.sum(1, keepdims=True)}, sharding)
        params, state = step(params, state, batch)


if __name__ == "__main__":
    main()
