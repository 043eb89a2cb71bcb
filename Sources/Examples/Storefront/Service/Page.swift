/// The page that shows the latest orders as they change.
enum Page {
    static let html = """
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <title>Storefront</title>
        <style>
        body { font-family: sans-serif; margin: 2rem; }
        table { border-collapse: collapse; }
        td, th { padding: 0.3rem 0.8rem; text-align: left; border-bottom: 1px solid #ccc; }
        .shipped { color: #2a7; }
        </style>
        </head>
        <body>
        <h1>Latest orders</h1>
        <p id="state">connecting</p>
        <table>
        <thead><tr><th>Customer</th><th>State</th><th>Payment</th><th>Total</th></tr></thead>
        <tbody id="orders"></tbody>
        </table>
        <p><a href="/queues">Queues of jobs</a></p>
        <script>
        const feed = new EventSource("/feed");
        feed.onopen = () => { document.getElementById("state").textContent = "live"; };
        feed.onerror = () => { document.getElementById("state").textContent = "waiting for the server"; };
        feed.onmessage = (event) => {
          const body = document.getElementById("orders");
          body.replaceChildren(...JSON.parse(event.data).map((order) => {
            const row = document.createElement("tr");
            for (const text of [order.customer, order.state, order.payment, (order.totalCents / 100).toFixed(2)]) {
              const cell = document.createElement("td");
              cell.textContent = text;
              row.append(cell);
            }
            row.className = order.state;
            return row;
          }));
        };
        </script>
        </body>
        </html>
        """
}
