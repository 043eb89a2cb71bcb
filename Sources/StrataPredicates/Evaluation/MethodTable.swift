/// The methods that `FUNCTION(target, "name:", …)` calls, in place of an Objective-C runtime.
///
/// The functions of the target itself come first, then those that the program has registered, then the methods listed
/// here. A path under a variable (`$item.price`) also comes here, often; the program cannot replace it.
enum MethodTable {
    static func call(_ name: String, on target: Any?, _ arguments: [Any?]) throws -> Any? {
        guard let target, name != KeyPathFunction.name else { return try callBuiltIn(name, on: target, arguments) }
        if let function = (target as? any ExpressionFunctionTarget)?.function(named: name) {
            try check(arguments, of: name)
            return nullToNil(try function(arguments))
        }
        if let function = ExpressionFunctions.shared[name] {
            try check(arguments, of: name)
            return nullToNil(try function(target, arguments))
        }
        return try callBuiltIn(name, on: target, arguments)
    }

    /// Each colon in a name stands for an argument.
    private static func check(_ arguments: [Any?], of name: String) throws {
        let expected = name.utf8.count { $0 == UInt8(ascii: ":") }
        guard expected != arguments.count else { return }
        throw PredicateEvaluationError("the function \(name) takes \(expected) arguments, not \(arguments.count)")
    }

    private static func callBuiltIn(_ name: String, on target: Any?, _ arguments: [Any?]) throws -> Any? {
        let first = arguments.first ?? nil
        switch name {
        case KeyPathFunction.name, "valueForKey:", "objectForKey:", "valueForKeyPath":
            guard let path = PredicateValue(scalar: first)?.stringValue else { break }
            return try KeyPathReader.value(of: target, path: path)
        case "objectAtIndex:":
            guard let members = collectionMembers(of: target),
                let index = PredicateValue(scalar: first)?.integerValue.flatMap(Int.init(exactly:)),
                members.indices.contains(index)
            else { return nil }
            return members[index]
        case "count":
            return NSNumber(value: collectionMembers(of: target)?.count ?? 0)
        default:
            let value = PredicateValue(any: target)
            if case .null = value, let target, PredicateValue(scalar: target) == nil {
                throw PredicateEvaluationError(
                    "there is no function \(name) to call on a value of type \(type(of: target))"
                )
            }
            return try call(name, on: value, PredicateValue(any: first))
        }
        throw PredicateEvaluationError("the arguments of \(name) are not what it takes")
    }

    private static func call(_ name: String, on target: PredicateValue, _ argument: PredicateValue) throws -> Any? {
        if target.isNull { return nil }
        switch (name, target) {
        case ("uppercaseString", .string(let text)): return text.uppercased()
        case ("lowercaseString", .string(let text)): return text.lowercased()
        case ("capitalizedString", .string(let text)): return text.capitalized
        case ("length", _): return PredefinedFunction.length.apply([target]).anyValue
        case ("stringByAppendingString:", .string(let text)): return argument.stringValue.map { text + $0 }
        case ("description", _), ("stringValue", _): return target.anyValue.map { "\($0)" }
        case ("doubleValue", _), ("floatValue", _):
            return CastTarget.number.apply(target).doubleValue.map { NSNumber(value: $0) }
        case ("integerValue", _), ("intValue", _), ("longLongValue", _):
            return CastTarget.number.apply(target).integerValue.map { NSNumber(value: $0) }
        case ("boolValue", _):
            return NSNumber(value: (CastTarget.number.apply(target).doubleValue ?? 0) != 0)
        default:
            throw PredicateEvaluationError("there is no function \(name) to call on \(target.kindName)")
        }
    }
}
