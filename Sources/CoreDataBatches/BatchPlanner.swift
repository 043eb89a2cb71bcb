import CoreDataEssentials
import StrataPredicates
import StrataRows

/// Resolves batch requests against a context's model.
///
/// Names become entities and slots. Requests that cannot be carried out are refused before anything runs.
package struct BatchPlanner {
    let planner: FetchPlanner

    package init(planner: FetchPlanner) { self.planner = planner }

    // MARK: - Deleting

    /// The rows that a batch delete selects; `nil` for none.
    func plan(_ request: NSBatchDeleteRequest) throws -> BatchDeletion? {
        if let misuse = request.misuse { throw FetchPlanner.refused("A batch delete is refused. \(misuse)") }
        guard !request.isOfNothing else { return nil }
        var specification = request.specification
        specification.resultType = .managedObjectIDResultType
        specification.propertiesToFetch = nil
        specification.fetchBatchSize = 0
        return BatchDeletion(rows: try planner.plan(specification))
    }

    // MARK: - Updating

    /// The rows that a batch update selects, their values, and the store to which the values refer, if any.
    func plan(_ request: NSBatchUpdateRequest) throws -> (update: BatchUpdate, store: OpenStore?) {
        let rows = try planner.plan(request.specification)
        request.resolve(to: rows.layout.entity)
        return try update(rows, setting: request.propertiesToUpdate ?? [:], action: "A batch update")
    }

    /// The update that gives values to rows, and the store to which the values refer, if any.
    ///
    /// - Parameters:
    ///   - rows: The rows.
    ///   - properties: Values or expressions, by the properties or their names.
    ///   - action: The operation, for errors.
    /// - Returns: The update, and the store of the objects among the values.
    /// - Throws: `persistentStoreOperation` (134070) for a property that cannot be set, or not to that value.
    package func update(
        _ rows: FetchPlan,
        setting properties: [AnyHashable: Any],
        action: String
    ) throws -> (update: BatchUpdate, store: OpenStore?) {
        var rows = rows
        let layout = rows.layout
        var values = BatchValues(layout, action: action)
        let constants = Row(layout: layout, key: 0)
        var given = SlotSet()
        var computed: [BatchUpdate.Computed] = []
        var variableCount = rows.predicate?.variableCount ?? 1
        guard !properties.isEmpty else { throw values.refused("has nothing to change; set propertiesToUpdate.") }
        var names: Set<String> = []
        for (key, value) in properties {
            let name = NSBatchUpdateRequest.name(key)
            guard names.insert(name).inserted else { throw values.refused("is told \"\(name)\" twice.") }
            guard let expression = value as? NSExpression, case .slot(let index)? = layout.places[name],
                !expression.isConstant
            else {
                let value = (value as? NSExpression)?.constantIfConstant ?? value
                try values.set(value, forKey: name, in: constants, &given)
                continue
            }
            let slot = layout.slots[index]
            let (resolved, count) = try resolve(expression, for: slot, values)
            variableCount = max(variableCount, count)
            computed.append(BatchUpdate.Computed(slot: slot, expression: resolved))
        }
        for slot in layout.slots where given.contains(slot.index) {
            try requireReleasable(slot, constants: constants, values: values)
        }
        rows.hasCostlyValues = computed.contains { $0.expression.isCostly }
        let update = BatchUpdate(
            rows: rows,
            constants: constants,
            constantSlots: layout.slots.filter { given.contains($0.index) },
            computed: computed.sorted { $0.slot.index < $1.slot.index },
            variableCount: variableCount
        )
        return (update, values.store)
    }

    /// Refuses to clear a relationship whose inverse must not be nil.
    private func requireReleasable(_ slot: Slot, constants: Row, values: BatchValues) throws {
        guard slot.kind == .reference, constants.isNull(slot.index) else { return }
        guard let inverse = slot.inverse, !inverse.isToMany, !inverse.isOptional else {
            return
        }
        throw values.refused(
            "cannot clear \"\(slot.name)\": \"\(inverse.name)\" of \(inverse.entity.name) must not be nil."
        )
    }

    private func resolve(
        _ expression: NSExpression,
        for slot: Slot,
        _ values: BatchValues
    ) throws -> (ResolvedExpression, Int) {
        try values.requireStored(slot)
        guard slot.kind != .reference else {
            throw values.refused("cannot set \"\(slot.name)\" to an expression: it takes an object or its ID.")
        }
        do {
            let resolved = try PredicateResolver.resolve(expression, schema: values.layout)
            let type = resolved.expression.type
            // Values that are archived or kept in a file cannot be computed.
            let isOpaque = slot.kind == .data && type != .null
            guard !isOpaque, slot.type.canHold(type), !(slot.type == .string && type.isNumeric) else {
                throw values.refused(
                    "cannot set \"\(slot.name)\" to a value of type \(type): it takes \(slot.type.described)."
                )
            }
            return resolved
        } catch let error as PredicateResolutionError {
            throw values.refused("cannot work out \"\(slot.name)\": \(error)", error)
        }
    }

    // MARK: - Inserting

    /// The entity of a batch insert.
    func layout(of request: NSBatchInsertRequest) throws -> EntityLayout {
        let entity = try planner.entity(of: request.specification)
        guard !entity.isAbstract else {
            throw FetchPlanner.refused(
                "A batch insert of \(entity.name ?? "") is refused: the entity is abstract; name one of its sub-entities."
            )
        }
        request.resolve(to: entity)
        return entity.layout
    }
}

extension NSExpression {
    fileprivate var isConstant: Bool { expressionType == .constantValue }
    fileprivate var constantIfConstant: Any? { isConstant ? constantValue ?? NSNull() : nil }
}
