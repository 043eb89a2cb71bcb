import StrataPredicates

extension CocoaError {
    /// The managed objects that the error is about.
    public var affectedObjects: [AnyObject]? { userInfo[NSAffectedObjectsErrorKey] as? [AnyObject] }

    /// The stores that the error is about.
    public var affectedStores: [AnyObject]? { userInfo[NSAffectedStoresErrorKey] as? [AnyObject] }

    /// The name of the property that did not pass validation.
    public var validationKey: String? { userInfo[NSValidationKeyErrorKey] as? String }

    /// The managed object that did not pass validation.
    public var validationObject: Any? { userInfo[NSValidationObjectErrorKey] }

    /// The validation predicate that was not fulfilled.
    public var validationPredicate: NSPredicate? { userInfo[NSValidationPredicateErrorKey] as? NSPredicate }

    /// The value that did not pass validation.
    public var validationValue: Any? { userInfo[NSValidationValueErrorKey] }

    /// The individual errors behind an error with code 1560 (`validationMultipleErrors`); empty for other errors.
    ///
    /// An addition to Apple's API: on Linux `underlyingErrors` does not use `NSDetailedErrorsKey`.
    public var detailedErrors: [any Error] { userInfo[NSDetailedErrorsKey] as? [any Error] ?? [] }
}
