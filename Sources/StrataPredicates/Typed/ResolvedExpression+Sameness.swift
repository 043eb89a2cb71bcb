extension ResolvedExpression {
    /// Whether two expressions, each resolved for itself against one schema, are written the same and so have the same
    /// value for every object.
    ///
    /// Where that would take a look into conditions the answer is no.
    package func isSame(as other: ResolvedExpression) -> Bool {
        switch (self, other) {
        case (.constant(let left, let leftType), .constant(let right, let rightType)):
            return leftType == rightType && left == right
        case (.object(let left), .object(let right)): return left.isSame(as: right)
        case (.attribute(let left, let name), .attribute(let right, let otherName)):
            return name == otherName && left.isSame(as: right)
        case (.function(let left, let operands, _), .function(let right, let others, _)):
            // Two random numbers are not the same.
            return left == right && left != .random && left != .randomBelow && operands.count == others.count
                && zip(operands, others).allSatisfy { $0.isSame(as: $1) }
        case (.aggregate(let left), .aggregate(let right)): return left.isSame(as: right)
        case (.rowAggregate(let left, let operand), .rowAggregate(let right, let other)):
            return left == right && operand.isSame(as: other)
        default: return false
        }
    }
}

extension ResolvedPath {
    /// Whether both paths go the same way from the same variable.
    package func isSame(as other: ResolvedPath) -> Bool {
        variable == other.variable && steps.count == other.steps.count
            && zip(steps, other.steps).allSatisfy { $0.slot == $1.slot && $0.destination === $1.destination }
    }
}

extension ResolvedAggregate {
    fileprivate func isSame(as other: ResolvedAggregate) -> Bool {
        guard function == other.function, collection.filter == nil, other.collection.filter == nil,
            collection.owner.isSame(as: other.collection.owner),
            collection.relationship.slot == other.collection.relationship.slot
        else { return false }
        switch (element, other.element) {
        case (nil, nil): return true
        case (let left?, let right?): return left.isSame(as: right)
        default: return false
        }
    }
}
