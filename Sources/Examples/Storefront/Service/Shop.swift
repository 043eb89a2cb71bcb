import CoreData
import CoreDataJobs

/// The operations of the shop.
///
/// Each call is one unit of work, in a separate context.
package struct Shop: Sendable {
    package let container: NSPersistentContainer

    package init(_ container: NSPersistentContainer) { self.container = container }

    /// The number of times that a unit of work is tried again after others were faster.
    private static let retries = 50

    private func context(_ name: String) -> NSManagedObjectContext {
        let context = container.newBackgroundContext()
        context.name = name
        context.transactionAuthor = "shop"
        return context
    }

    // MARK: - Products

    /// Adds a product, or more items of an existing one.
    package func deliver(_ message: ProductMessage) throws {
        let context = context("deliver")
        try context.performAndWait(retrying: Self.retries) {
            let product = try product(message.sku, in: context) ?? Product(context: context)
            product.sku = message.sku
            product.name = message.name
            product.priceCents = message.priceCents
            product.stock += message.stock
            product.delivered += message.stock
        }
    }

    package func products() throws -> [ProductMessage] {
        let context = context("products")
        return try context.performAndWait {
            let request = NSFetchRequest<Product>(entityName: "Product")
            request.sortDescriptors = [NSSortDescriptor(key: "sku", ascending: true)]
            request.fetchLimit = 1000
            return try context.fetch(request).map(\.message)
        }
    }

    package func product(_ sku: String) throws -> ProductMessage? {
        let context = context("product")
        return try context.performAndWait { try product(sku, in: context)?.message }
    }

    package func image(of sku: String) throws -> Data? {
        let context = context("image")
        return try context.performAndWait { try product(sku, in: context)?.image }
    }

    package func setImage(_ image: Data, of sku: String) throws {
        let context = context("set image")
        try context.performAndWait(retrying: Self.retries) {
            guard let product = try product(sku, in: context) else { throw HTTPError(404, "no product \(sku)") }
            product.image = image
        }
    }

    private func product(_ sku: String, in context: NSManagedObjectContext) throws -> Product? {
        let request = NSFetchRequest<Product>(entityName: "Product")
        request.predicate = NSPredicate(format: "sku == %@", sku)
        request.fetchLimit = 1
        return try context.fetch(request).first
    }

    /// Inserts many products at once.
    ///
    /// Those whose SKU exists already are left out.
    ///
    /// - Parameters:
    ///   - messages: The products.
    ///   - progress: Receives the numbers of products that were made and written.
    /// - Returns: The number of inserted products.
    /// - Throws: `CancellationError` if the task was cancelled: nothing was inserted then.
    package func insert(
        _ messages: [ProductMessage],
        progress: @escaping @Sendable (BatchInsertProgress) -> Void
    ) async throws -> Int {
        let context = context("import")
        context.mergePolicy = NSMergePolicy.mergeByPropertyStoreTrump
        let objects = messages.map { message -> [String: Any] in
            [
                "sku": message.sku, "name": message.name, "priceCents": message.priceCents, "stock": message.stock,
                "delivered": message.stock,
            ]
        }
        let request = NSBatchInsertRequest(entityName: "Product", objects: objects)
        request.resultType = .count
        return try await context.execute(request, progress: progress).result as? Int ?? 0
    }

    // MARK: - Orders

    /// Places an order: takes its products from the stock, pays, and enqueues the job that ships it.
    ///
    /// - Throws: `HTTPError` 404 for a product that does not exist, 409 if there are too few.
    package func place(_ message: OrderRequest) throws -> OrderMessage {
        guard !message.lines.isEmpty, message.lines.allSatisfy({ (1...1000).contains($0.quantity) }) else {
            throw HTTPError(400, "an order has lines, and a line 1 to 1000 of a product")
        }
        let context = context("place")
        let order = try context.performAndWait(retrying: Self.retries) {
            // A client that has received no answer sends the order again.
            if let order = try Self.order(message.number, in: context) { return order }
            let order = Order(context: context)
            order.number = message.number
            order.customer = message.customer
            order.createdAt = Date()
            order.updatedAt = order.createdAt
            order.state = .placed
            var total: Int64 = 0
            for item in message.lines {
                guard let product = try product(item.sku, in: context) else {
                    throw HTTPError(404, "no product \(item.sku)")
                }
                guard product.stock >= item.quantity else { throw HTTPError(409, "too few of \(item.sku)") }
                product.stock -= item.quantity
                let line = OrderLine(context: context)
                line.quantity = item.quantity
                line.amountCents = item.quantity * product.priceCents
                line.product = product
                line.order = order
                total += line.amountCents
            }
            order.payment = payment(total, message.card, in: context)
            // The job is stored with the order, or not at all.
            try context.enqueue(Pack(order: order.number))
            return order
        }
        return context.performAndWait { order.message }
    }

    private func payment(_ cents: Int64, _ card: String?, in context: NSManagedObjectContext) -> Payment {
        let payment: Payment
        if let card {
            let paid = CardPayment(context: context)
            paid.lastDigits = card
            payment = paid
        } else {
            let due = InvoicePayment(context: context)
            due.dueAt = Date(timeIntervalSinceNow: 14 * 86_400)
            payment = due
        }
        payment.amountCents = cents
        return payment
    }

    package func order(_ number: UUID) throws -> OrderMessage? {
        let context = context("order")
        return try context.performAndWait { try Self.order(number, in: context)?.message }
    }

    static func order(_ number: UUID, in context: NSManagedObjectContext) throws -> Order? {
        let request = NSFetchRequest<Order>(entityName: "Order")
        request.predicate = NSPredicate(format: "number == %@", number as NSUUID)
        request.fetchLimit = 1
        return try context.fetch(request).first
    }

    package func counts() throws -> OrderCounts {
        let context = context("counts")
        return try context.performAndWait {
            func count(_ state: Order.State) throws -> Int {
                let request = NSFetchRequest<Order>(entityName: "Order")
                request.predicate = NSPredicate(format: "state == %d", Int(state.rawValue))
                return try context.count(for: request)
            }
            return OrderCounts(placed: try count(.placed), shipped: try count(.shipped))
        }
    }

    /// How the queues of jobs stand.
    package func queues() throws -> [QueueCounts] {
        let context = context("queues")
        return try context.performAndWait { try QueueCounts.all(in: context) }
    }

    /// The jobs of each queue, for the metrics.
    func jobStatistics() throws -> JobStatistics {
        let context = context("jobs")
        return try context.performAndWait { try context.jobStatistics() }
    }

    /// A request for the orders that were changed last, newest first.
    package static func latest(_ limit: Int) -> NSFetchRequest<Order> {
        let request = NSFetchRequest<Order>(entityName: "Order")
        request.sortDescriptors = [NSSortDescriptor(key: "updatedAt", ascending: false)]
        request.fetchLimit = limit
        request.relationshipKeyPathsForPrefetching = ["lines.product", "payment"]
        return request
    }
}

extension Product {
    var message: ProductMessage { ProductMessage(sku: sku, name: name, priceCents: priceCents, stock: stock) }
}

extension Order {
    var message: OrderMessage {
        OrderMessage(
            number: number,
            customer: customer,
            state: state.name,
            totalCents: totalCents,
            payment: payment is CardPayment ? "card" : "invoice",
            lines: lines.map { line in
                OrderMessage.Line(sku: line.product?.sku ?? "", quantity: line.quantity, amountCents: line.amountCents)
            }.sorted { $0.sku < $1.sku }
        )
    }
}
